package peer

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/atomicfile"
	"github.com/fullpipe-net/fullpipe/internal/probe"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// sshPeer is a native far end that exists as long as its ssh connection.
type sshPeer struct {
	transfer.Peer
	session *sshSession
}

func (p *sshPeer) Close() error { return errors.Join(p.Peer.Close(), p.session.close()) }

// openSSH runs the system's ssh, which starts a server at the far end, and connects to the server.
func openSSH(ctx context.Context, text string, o Options) (transfer.Peer, error) {
	target, err := parseSSH(text)
	if err != nil {
		return nil, &BadPeer{text, err.Error(), "ssh://HOST or ssh://USER@HOST:PORT"}
	}
	session, err := startSSH(ctx, target, o)
	if err != nil {
		return nil, err
	}
	var far transfer.Peer
	if o.Tunnel {
		far, err = session.tunnel(ctx, &o)
	} else {
		far, err = session.direct(ctx, &o)
	}
	if err != nil {
		session.close()
		return nil, err
	}
	return &sshPeer{far, session}, nil
}

// sshSession is a running ssh whose remote command is a server. The server exits when its standard input closes,
// so it always exits with ssh.
type sshSession struct {
	target    sshTarget
	times     sshTimeouts
	dir       string // has the control socket that adds tunnels
	removeDir func()
	cmd       *exec.Cmd
	stdin     io.Closer
	stderr    tail
	closed    sync.Once
	signs     chan struct{} // of output from ssh or the far end
	exited    chan struct{} // closed when ssh has exited
	err       error         // exit error; read after exited

	login atomic.Bool // the far end has written its first bytes
	port  string
	key   probe.Key
}

// arrived is the far end's first output: ssh has logged in and runs our command.
const arrived = "fullpipe-arrived"

// sshTimeouts are the timeouts of ssh.
type sshTimeouts struct {
	login   time.Duration // login without a password prompt
	typing  time.Duration // login with a possible password prompt
	silence time.Duration // between two outputs of the far end
	goodbye time.Duration // exit after a request
}

var defaultSSHTimeouts = sshTimeouts{login: 15 * time.Second, typing: 60 * time.Second, silence: 15 * time.Second,
	goodbye: 3 * time.Second}

// outputWaitDelay limits the wait for background processes of ssh that keep its output open.
const outputWaitDelay = 500 * time.Millisecond

// loginTimeout returns the timeout of the login on this terminal.
func (t *sshTimeouts) loginTimeout() time.Duration {
	if tty, err := os.Open("/dev/tty"); err == nil {
		tty.Close()
		return t.typing
	}
	if os.Getenv("SSH_ASKPASS") != "" {
		return t.typing
	}
	return t.login
}

// silentSSHError reports a far end that was silent until its timeout.
type silentSSHError struct {
	within time.Duration
	login  bool // after the login
}

func (e *silentSSHError) Error() string {
	if e.login {
		return fmt.Sprintf("the far end logged in but sent nothing for %v", e.within)
	}
	return fmt.Sprintf("the far end did not respond within %v", e.within)
}

func startSSH(ctx context.Context, target sshTarget, o Options) (*sshSession, error) {
	s := &sshSession{target: target, times: defaultSSHTimeouts, signs: make(chan struct{}, 1), exited: make(chan struct{})}
	if o.sshTimes != nil {
		s.times = *o.sshTimes
	}
	var options []string
	if o.Tunnel {
		dir, remove, err := atomicfile.TempDir("fullpipe-")
		if err != nil {
			return nil, err
		}
		s.dir = dir
		s.removeDir = remove
		options = []string{"-o", "ControlMaster=yes", "-o", "ControlPersist=no", "-o", "ControlPath=" + s.controlPath()}
	}
	if o.Copy && !o.Tunnel { // through a tunnel, compression would change the measurement
		options = compressed
	}
	remote, program, err := serveThere(ctx, target, o)
	if err == nil {
		s.cmd = target.command(options, remote)
		err = s.start(ctx, program)
	}
	if err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

func (s *sshSession) controlPath() string { return s.dir + "/c" }

// start runs ssh, sends it the program to copy, if any, and waits for the server.
func (s *sshSession) start(ctx context.Context, program string) error {
	stdin, err := s.cmd.StdinPipe()
	if err != nil {
		return err
	}
	s.stdin = stdin
	stdout, lines := io.Pipe()
	s.cmd.Stdout = lines
	s.cmd.Stderr = &s.stderr
	s.cmd.WaitDelay = min(outputWaitDelay, s.times.goodbye)
	if err := s.cmd.Start(); err != nil {
		return &SSHError{s.target.host, err, "install an ssh client"}
	}
	ready := make(chan error, 1)
	go func() {
		s.err = s.cmd.Wait()
		lines.Close()
		close(s.exited)
	}()
	go func() {
		ready <- s.awaitReady(bufio.NewScanner(io.LimitReader(stdout, 64<<10)))
		io.Copy(io.Discard, stdout)
	}()
	if program != "" {
		go s.send(stdin, program) // if it fails, no server starts
	}
	err = s.awaitSigns(ctx, ready, program != "")
	if err == nil {
		return nil
	}
	s.stdin.Close()
	var silent *silentSSHError
	if errors.As(err, &silent) || ctx.Err() != nil {
		s.cmd.Process.Kill()
		return &SSHError{s.target.host, err, "ssh " + s.target.host + " by hand, until it works"}
	}
	select {
	case <-s.exited:
		return s.explain(err)
	case <-time.After(s.times.goodbye):
		return &SSHError{s.target.host, err, ""}
	}
}

// awaitSigns waits for the server while the far end sends output. A copy may still be in flight when ssh has read
// all of it.
func (s *sshSession) awaitSigns(ctx context.Context, ready <-chan error, copies bool) error {
	patience := s.times.silence
	if copies {
		patience *= 4
	}
	silent := &silentSSHError{within: s.times.loginTimeout()}
	late := time.NewTimer(silent.within)
	defer late.Stop()
	for {
		select {
		case err := <-ready:
			return err
		case <-s.signs:
			silent = &silentSSHError{patience, true}
			late.Reset(silent.within)
		case <-late.C:
			return silent
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// alive records output of the far end.
func (s *sshSession) alive() {
	select {
	case s.signs <- struct{}{}:
	default:
	}
}

// send copies the program. After the far end's first output, each part that ssh reads restarts the timeout. Before
// that, ssh only fills its own buffers.
func (s *sshSession) send(to io.Writer, program string) error {
	f, err := os.Open(program)
	if err != nil {
		return err
	}
	defer f.Close()
	for part := make([]byte, 64<<10); ; {
		n, err := f.Read(part)
		if _, werr := to.Write(part[:n]); err != nil || werr != nil {
			return errors.Join(err, werr)
		}
		if s.login.Load() {
			s.alive()
		}
	}
}

// awaitReady reads up to the server's first line. A login may print others before.
func (s *sshSession) awaitReady(lines *bufio.Scanner) error {
	for lines.Scan() {
		if strings.TrimSpace(lines.Text()) == arrived {
			if !s.login.Swap(true) { // a repeated line is no progress
				s.alive()
			}
			continue
		}
		var line struct {
			Event, Listen, Key string
			Error              *struct{ Message string }
		}
		if json.Unmarshal(lines.Bytes(), &line) != nil {
			continue
		}
		switch {
		case line.Error != nil:
			return errors.New("the server there: " + line.Error.Message)
		case line.Event == "ready":
			key, err := probe.ParseKey(line.Key)
			if err != nil {
				return err
			}
			_, port, err := net.SplitHostPort(line.Listen)
			if n, wrong := strconv.ParseUint(port, 10, 16); err != nil || wrong != nil || n == 0 {
				return fmt.Errorf("the server there listens at %q, which is no address with a port", line.Listen)
			}
			s.port = port
			s.key = key
			return nil
		}
	}
	return errNotReady
}

var errNotReady = errors.New("no server came up there")

// explain returns why ssh exited without a server.
func (s *sshSession) explain(err error) error {
	e := &SSHError{Host: s.target.host, Err: err}
	var exit *exec.ExitError
	if !errors.Is(err, errNotReady) || !errors.As(s.err, &exit) {
		return e
	}
	last := s.stderr.last()
	switch exit.ExitCode() {
	case 255:
		e.Err = errors.New(last)
		e.Hint = "ssh " + s.target.host + " by hand, until it works"
	case 127:
		e.Err = errors.New("there is no fullpipe on that host's PATH")
		e.Hint = "--copy, which brings this program there " +
			"for the while"
	case 126:
		e.Err = errors.New("the program may not run there: " + last)
		e.Hint = "a host whose temporary directory is not " +
			"mounted noexec, or fullpipe installed there"
	default:
		e.Err = fmt.Errorf("%w: %s", err, last)
		if strings.Contains(last, "unknown flag") {
			e.Hint = "the same version of fullpipe there, or --copy"
		}
	}
	return e
}

// close ends the server and ssh.
func (s *sshSession) close() error {
	s.closed.Do(func() {
		if s.stdin != nil {
			s.stdin.Close()
		}
		if s.cmd != nil && s.cmd.Process != nil {
			select {
			case <-s.exited:
			case <-time.After(s.times.goodbye):
				s.cmd.Process.Kill()
				<-s.exited
			}
		}
		if s.removeDir != nil {
			s.removeDir()
		}
	})
	return nil
}
