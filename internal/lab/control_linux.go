package lab

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// control is one side of the socket pair between a lab's user and its engine.
type control struct {
	conn   *net.UnixConn
	buffer []byte
	oob    []byte
}

const maxMessage = 128 << 10

func newControl(f *os.File) (*control, error) {
	c, err := net.FileConn(f)
	f.Close()
	if err != nil {
		return nil, err
	}
	return controlOf(c.(*net.UnixConn)), nil
}

func controlOf(c *net.UnixConn) *control {
	return &control{c, make([]byte, maxMessage), make([]byte, unix.CmsgSpace(3*4))}
}

func controlPair() (ours *control, theirs *os.File, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("control socket: %w", err)
	}
	ours, err = newControl(os.NewFile(uintptr(fds[0]), "control"))
	if err != nil {
		unix.Close(fds[1])
		return nil, nil, err
	}
	return ours, os.NewFile(uintptr(fds[1]), "control"), nil
}

func (c *control) send(message any, files ...*os.File) error {
	text, err := json.Marshal(message)
	if err != nil {
		return err
	}
	if len(text) > maxMessage {
		return fmt.Errorf("a command of %d bytes is more than the %d that can be passed", len(text), maxMessage)
	}
	var rights []byte
	if len(files) > 0 {
		fds := make([]int, len(files))
		for i, f := range files {
			fds[i] = int(f.Fd())
		}
		rights = unix.UnixRights(fds...)
	}
	_, _, err = c.conn.WriteMsgUnix(text, rights, nil)
	return err
}

// receive waits for one message. The caller closes the files that come with it.
func (c *control) receive(into any) ([]int, error) {
	n, oobn, flags, _, err := c.conn.ReadMsgUnix(c.buffer, c.oob)
	if err != nil {
		return nil, err
	}
	var fds []int
	if oobn > 0 {
		messages, err := unix.ParseSocketControlMessage(c.oob[:oobn])
		if err != nil {
			return nil, err
		}
		for _, m := range messages {
			if got, err := unix.ParseUnixRights(&m); err == nil {
				fds = append(fds, got...)
			}
		}
	}
	if n == 0 {
		return fds, errEnded
	}
	if flags&unix.MSG_TRUNC != 0 {
		return fds, errors.New("message cut short")
	}
	return fds, json.Unmarshal(c.buffer[:n], into)
}

var errEnded = errors.New("the other side has ended")
