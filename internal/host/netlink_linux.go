package host

import (
	"encoding/binary"
	"errors"
	"syscall"

	"golang.org/x/sys/unix"
)

// dump asks a netlink family for all of something and calls each with every answer's
// payload.
func dump(protocol, kind int, request []byte, each func(payload []byte)) error {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, protocol)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if err := unix.Sendto(fd, message(kind, unix.NLM_F_DUMP, request), 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return err
	}
	return answers(fd, func(m syscall.NetlinkMessage) { each(m.Data) })
}

// acknowledged sends one change and waits for the kernel's answer to it.
func acknowledged(kind, flags int, body []byte) error {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if err := unix.Sendto(fd, message(kind, flags|unix.NLM_F_ACK, body), 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return err
	}
	return answers(fd, func(syscall.NetlinkMessage) {})
}

func message(kind, flags int, body []byte) []byte {
	m := binary.NativeEndian.AppendUint32(nil, uint32(unix.SizeofNlMsghdr+len(body)))
	m = binary.NativeEndian.AppendUint16(m, uint16(kind))
	m = binary.NativeEndian.AppendUint16(m, uint16(unix.NLM_F_REQUEST|flags))
	m = binary.NativeEndian.AppendUint32(m, 1) // sequence
	m = binary.NativeEndian.AppendUint32(m, 0) // port
	return append(m, body...)
}

// answers reads until the kernel says that it is done, or an error.
func answers(fd int, each func(syscall.NetlinkMessage)) error {
	buffer := make([]byte, 64<<10)
	for {
		n, _, err := unix.Recvfrom(fd, buffer, 0)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return err
		}
		messages, err := syscall.ParseNetlinkMessage(buffer[:n])
		if err != nil {
			return err
		}
		for _, m := range messages {
			switch m.Header.Type {
			case unix.NLMSG_DONE:
				return nil
			case unix.NLMSG_ERROR:
				if len(m.Data) >= 4 {
					if code := int32(binary.NativeEndian.Uint32(m.Data)); code != 0 {
						return unix.Errno(-code)
					}
				}
				return nil
			default:
				each(m)
			}
		}
	}
}
