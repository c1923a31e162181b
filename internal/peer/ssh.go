package peer

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/probe"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// SSHError is a far end that could not be started or reached over ssh.
type SSHError struct {
	Host string
	Err  error
	Hint string
}

func (e *SSHError) Error() string { return "ssh " + e.Host + ": " + e.Err.Error() }
func (e *SSHError) Unwrap() error { return e.Err }

// Try names the way out.
func (e *SSHError) Try() string { return e.Hint }

// sshTarget is where the system's ssh is told to go.
type sshTarget struct {
	host string // [USER@]HOST, as ssh takes it
	port string // empty: ssh's configuration decides
}

func parseSSH(text string) (sshTarget, error) {
	u, err := url.Parse(text)
	if err != nil {
		return sshTarget{}, errors.New("not ssh://[USER@]HOST[:PORT]")
	}
	t := sshTarget{host: u.Hostname(), port: u.Port()}
	if u.User != nil {
		if _, has := u.User.Password(); has {
			return t, errors.New("a password does not belong here; ssh asks for it, or uses a key")
		}
		t.host = u.User.Username() + "@" + t.host
	}
	switch {
	case u.Hostname() == "":
		return t, errors.New("no host is called that")
	case u.Path != "" && u.Path != "/" || u.RawQuery != "" || u.Fragment != "":
		return t, errors.New("nothing follows the host")
	case strings.HasPrefix(t.host, "-") || strings.ContainsAny(t.host, " \t\n\x00"):
		return t, errors.New("no host is called that")
	}
	return t, nil
}

// command is the system's ssh with the target and a remote command.
func (t sshTarget) command(options []string, remote ...string) *exec.Cmd {
	args := append([]string{"-T", "-o", "ConnectTimeout=10"}, options...)
	if t.port != "" {
		args = append(args, "-p", t.port)
	}
	return exec.Command("ssh", append(append(args, "--", t.host), remote...)...)
}

// sshPeer is a native far end that lives as long as an ssh connection.
type sshPeer struct {
	transfer.Peer
	session *sshSession
}

func (p *sshPeer) Close() error { return errors.Join(p.Peer.Close(), p.session.close()) }

// RunDatagrams implements transfer.DatagramPeer.
func (p *sshPeer) RunDatagrams(ctx context.Context, spec transfer.DatagramSpec, each func(transfer.Interval)) (*transfer.DatagramResult, error) {
	carrier, ok := p.Peer.(transfer.DatagramPeer)
	if !ok {
		return nil, &transfer.Unsupported{Field: "UDP", Why: "a tunnel through ssh carries TCP only"}
	}
	return carrier.RunDatagrams(ctx, spec, each)
}

// RunBothDatagrams implements transfer.BothWaysDatagramPeer.
func (p *sshPeer) RunBothDatagrams(ctx context.Context, up, down transfer.DatagramSpec, each func(transfer.Direction, transfer.Interval)) (*transfer.DatagramResult, *transfer.DatagramResult, error) {
	carrier, ok := p.Peer.(transfer.BothWaysDatagramPeer)
	if !ok {
		return nil, nil, &transfer.Unsupported{Field: "UDP", Why: "a tunnel through ssh carries TCP only"}
	}
	return carrier.RunBothDatagrams(ctx, up, down, each)
}

// RunBoth implements transfer.BothWaysPeer.
func (p *sshPeer) RunBoth(ctx context.Context, up, down transfer.Spec, each func(transfer.Direction, transfer.Interval)) (*transfer.Result, *transfer.Result, error) {
	carrier, ok := p.Peer.(transfer.BothWaysPeer)
	if !ok {
		return nil, nil, &transfer.Unsupported{Field: "Direction", Why: "a tunnel through ssh is measured one way at a time"}
	}
	return carrier.RunBoth(ctx, up, down, each)
}

// openSSH has the system's ssh start a server at the far end and connects to it.
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
		far, err = session.tunnel(ctx)
	} else {
		far, err = session.direct(ctx, o.Route)
	}
	if err != nil {
		session.close()
		return nil, err
	}
	return &sshPeer{far, session}, nil
}

// sshSession is a running ssh whose remote command is a server. The server ends with
// its standard input, and so with ssh, however that ends.
type sshSession struct {
	target sshTarget
	dir    string // holds the socket by which a tunnel is added
	cmd    *exec.Cmd
	stdin  io.Closer
	stderr tail
	closed sync.Once
	exited chan struct{} // closed when ssh has ended
	err    error         // how it ended; read after exited

	port string
	key  probe.Key
}

const (
	sshPatience = 60 * time.Second // a person may have to type
	sshGoodbye  = 3 * time.Second
)

func startSSH(ctx context.Context, target sshTarget, o Options) (*sshSession, error) {
	s := &sshSession{target: target, exited: make(chan struct{})}
	var options []string
	if o.Tunnel {
		dir, err := os.MkdirTemp("", "fullpipe-")
		if err != nil {
			return nil, err
		}
		s.dir = dir
		options = []string{"-o", "ControlMaster=yes", "-o", "ControlPersist=no", "-o", "ControlPath=" + s.controlPath()}
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

// start runs ssh, feeds it the program to copy, if any, and waits for the server.
func (s *sshSession) start(ctx context.Context, program string) error {
	stdin, err := s.cmd.StdinPipe()
	if err != nil {
		return err
	}
	s.stdin = stdin
	stdout, err := s.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	s.cmd.Stderr = &s.stderr
	if err := s.cmd.Start(); err != nil {
		return &SSHError{s.target.host, err, "install an ssh client"}
	}
	ready := make(chan error, 1)
	go func() {
		if program != "" {
			send(stdin, program) // where it fails, no server comes up either
		}
		ready <- s.awaitReady(bufio.NewScanner(io.LimitReader(stdout, 64<<10)))
		io.Copy(io.Discard, stdout)
		s.err = s.cmd.Wait()
		close(s.exited)
	}()
	ctx, cancel := context.WithTimeout(ctx, sshPatience)
	defer cancel()
	select {
	case err = <-ready:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if err == nil {
		return nil
	}
	s.stdin.Close()
	select {
	case <-s.exited:
		return s.explain(err)
	case <-time.After(sshGoodbye):
		return &SSHError{s.target.host, err, ""}
	}
}

func send(to io.Writer, program string) error {
	f, err := os.Open(program)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = io.Copy(to, f)
	return err
}

// awaitReady reads until the server's first line; before it, a login may print others.
func (s *sshSession) awaitReady(lines *bufio.Scanner) error {
	for lines.Scan() {
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
			s.port, s.key = port, key
			return err
		}
	}
	return errNotReady
}

var errNotReady = errors.New("no server came up there")

// explain says why ssh ended without a server.
func (s *sshSession) explain(err error) error {
	e := &SSHError{Host: s.target.host, Err: err}
	var exit *exec.ExitError
	if !errors.Is(err, errNotReady) || !errors.As(s.err, &exit) {
		return e
	}
	last := s.stderr.last()
	switch exit.ExitCode() {
	case 255:
		e.Err, e.Hint = errors.New(last), "ssh "+s.target.host+" by hand, until it works"
	case 127:
		e.Err, e.Hint = errors.New("there is no fullpipe on that host's PATH"), "--copy, which brings this program there for the while"
	case 126:
		e.Err, e.Hint = errors.New("the program may not run there: "+last), "a host whose temporary directory is not mounted noexec, or fullpipe installed there"
	default:
		e.Err = fmt.Errorf("%w: %s", err, last)
		if strings.Contains(last, "unknown flag") {
			e.Hint = "the same version of fullpipe there, or --copy"
		}
	}
	return e
}

// close ends the server there and ssh.
func (s *sshSession) close() error {
	s.closed.Do(func() {
		if s.stdin != nil {
			s.stdin.Close()
		}
		if s.cmd != nil && s.cmd.Process != nil {
			select {
			case <-s.exited:
			case <-time.After(sshGoodbye):
				s.cmd.Process.Kill()
				<-s.exited
			}
		}
		if s.dir != "" {
			os.RemoveAll(s.dir)
		}
	})
	return nil
}

// tail keeps the end of what is written.
type tail struct {
	mu   sync.Mutex // guards kept
	kept []byte
}

func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	const most = 4 << 10
	t.kept = append(t.kept, b...)
	t.kept = t.kept[max(0, len(t.kept)-most):]
	return len(b), nil
}

// last is the last line that says something.
func (t *tail) last() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	lines := bytes.Split(bytes.TrimSpace(t.kept), []byte("\n"))
	return strings.TrimSpace(string(lines[len(lines)-1]))
}
