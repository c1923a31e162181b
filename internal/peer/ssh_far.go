package peer

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/probe"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/units"
)

// serveFlags start a server that exits when its standard input closes and prints its address.
const serveFlags = "serve --json --until-eof"

// serveThere returns the remote command that starts a server, and the file to send on its standard input, "" for
// none.
func serveThere(ctx context.Context, t sshTarget, o Options) (remote, program string, err error) {
	// Every shell that an sshd starts supports "&&": sh, csh, fish, cmd.exe.
	const hello = "echo " + arrived + " && "
	if !o.Copy {
		return hello + "fullpipe " + serveFlags, "", nil
	}
	program, err = os.Executable()
	if err != nil {
		return "", "", err
	}
	info, err := os.Stat(program)
	if err != nil {
		return "", "", err
	}
	if err := t.checkSameSystem(ctx); err != nil {
		return "", "", err
	}
	return hello + copied(info.Size(), cmp.Or(o.CopyName, rand.Text()), " "+serveFlags), program, nil
}

// compressed are the options of ssh for a copy: it halves the program.
var compressed = []string{"-C"}

// copied returns the remote command that reads a program of the given size from standard input, runs it with args
// and the rest of the input, and deletes it. mkdir refuses a directory that another user made.
func copied(bytes int64, name, arguments string) string {
	return fmt.Sprintf(`umask 077 && d=%s && mkdir "$d" && trap 'rm -rf "$d"' EXIT && trap 'exit 1' HUP INT TERM && `+
		`head -c %d >"$d/fullpipe" && chmod 700 "$d/fullpipe" && "$d/fullpipe"%s`, copyDirectory(name), bytes, arguments)
}

// copyDirectory returns the shell word of the directory that has the copy of a name.
func copyDirectory(name string) string { return `"${TMPDIR:-/tmp}/fullpipe-` + name + `"` }

// checkSameSystem returns an error if this binary cannot run at the far end.
func (t sshTarget) checkSameSystem(ctx context.Context) error {
	const maxName = 4 << 10 // bytes
	out, says, err := runBounded(ctx, t.command(nil, "uname -sm"), defaultSSHTimeouts.loginTimeout(), maxName)
	if err != nil {
		return &SSHError{t.host, fmt.Errorf("query its system: %w: %s", err, says.last()), "ssh " + t.host +
			" by hand, until it works"}
	}
	there := strings.ToLower(string(bytes.TrimSpace(out)))
	goos, machine, _ := strings.Cut(there, " ")
	goarch := map[string]string{"x86_64": "amd64", "amd64": "amd64", "aarch64": "arm64", "arm64": "arm64", "i686": "386",
		"armv7l": "arm", "riscv64": "riscv64", "s390x": "s390x", "ppc64le": "ppc64le"}[machine]
	if goos != runtime.GOOS || goarch != runtime.GOARCH {
		return &SSHError{t.host, fmt.Errorf("it is %s, and this program is for %s/%s", there, runtime.GOOS, runtime.GOARCH),
			"fullpipe for that system, installed there"}
	}
	return nil
}

// runBounded runs a command with a timeout and reads at most maxOutput bytes of its output.
func runBounded(ctx context.Context, cmd *exec.Cmd, limit time.Duration, most int) (stdout []byte, says *tail,
	err error) {
	out := &limitedBuffer{most: most}
	says = &tail{}
	cmd.Stdout = out
	cmd.Stderr = says
	cmd.WaitDelay = outputWaitDelay
	if err := cmd.Start(); err != nil {
		return nil, says, err
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	defer context.AfterFunc(ctx, func() { cmd.Process.Kill() })()
	err = cmd.Wait()
	switch {
	case out.over:
		err = fmt.Errorf("its output exceeds %v", units.Size(most))
	case ctx.Err() != nil:
		err = context.Cause(ctx)
	}
	return out.kept, says, err
}

// limitedBuffer keeps output up to a limit and then returns an error.
type limitedBuffer struct {
	kept []byte
	most int
	over bool
}

func (c *limitedBuffer) Write(b []byte) (int, error) {
	c.over = c.over || len(c.kept)+len(b) > c.most
	if c.over {
		return 0, io.ErrShortWrite
	}
	c.kept = append(c.kept, b...)
	return len(b), nil
}

// direct connects to the server's own port.
func (s *sshSession) direct(ctx context.Context, o *Options) (transfer.Peer, error) {
	host, err := s.target.hostName(ctx)
	if err != nil {
		return nil, err
	}
	address := net.JoinHostPort(host, s.port)
	far, err := o.connect(ctx, probe.Far{Address: address, Key: s.key, Route: o.Route})
	if err != nil {
		return nil, &SSHError{s.target.host, fmt.Errorf("ssh works, but TCP port %s there cannot be reached from here: %w",
			s.port, err),
			fmt.Sprintf("open TCP port %s of %s to this host, or --tunnel to measure through ssh", s.port, host)}
	}
	return &native{far}, nil
}

// hostName returns the host name in ssh's configuration for the target.
func (t sshTarget) hostName(ctx context.Context) (string, error) {
	const maxConfiguration = 1 << 20 // bytes
	out, _, err := runBounded(ctx, t.command([]string{"-G"}), 10*time.Second, maxConfiguration)
	if err != nil {
		return "", &SSHError{t.host, fmt.Errorf("ask ssh for its configuration (ssh -G): %w", err), ""}
	}
	for line := range strings.Lines(string(out)) {
		if name, ok := strings.CutPrefix(strings.TrimSpace(line), "hostname "); ok {
			return name, nil
		}
	}
	return "", &SSHError{t.host, errors.New("ssh -G names no host"), ""}
}

// tunnel connects through the ssh connection.
func (s *sshSession) tunnel(ctx context.Context, o *Options) (transfer.Peer, error) {
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	local := free.Addr().String()
	free.Close()
	cmd := s.target.command([]string{"-o", "ControlPath=" + s.controlPath(), "-O", "forward", "-L", local + ":127.0.0.1:" +
		s.port})
	if _, says, err := runBounded(ctx, cmd, 10*time.Second, 4<<10); err != nil {
		return nil, &SSHError{s.target.host, fmt.Errorf("forward a port: %w: %s", err, says.last()),
			"an ssh client and server that allow forwarding (AllowTcpForwarding)"}
	}
	far, err := o.connect(ctx, probe.Far{Address: local, Key: s.key})
	if err != nil {
		return nil, &SSHError{s.target.host, fmt.Errorf("through the tunnel: %w", err),
			"a server that allows forwarding (AllowTcpForwarding)"}
	}
	return &tunnelPeer{far}, nil
}

// tunnelPeer is a far end behind ssh's own connection.
type tunnelPeer struct{ transfer.Peer }

// Check refuses UDP, two directions at once, and options that only affect the two local connections of ssh.
func (p *tunnelPeer) Check(t transfer.Test) error {
	spec, err := t.OneWay("a tunnel through ssh carries TCP only", "a tunnel through ssh is measured one way at a time")
	switch {
	case err != nil:
		return err
	case spec.Near != (transfer.Socket{}) || spec.Far != (transfer.Socket{}):
		return &transfer.Unsupported{Field: "Near and Far",
			Reason: "through the tunnel, ssh's own connection crosses the path; fullpipe cannot set its socket"}
	}
	return p.Peer.Check(t)
}

// Run removes the samples: they describe the connections to ssh.
func (p *tunnelPeer) Run(ctx context.Context, t transfer.Test, each func(transfer.Interval)) ([]transfer.Outcome,
	error) {
	if err := p.Check(t); err != nil {
		return nil, err
	}
	spec := *t.Legs[0].TCP
	spec.Latency = false // echoes would share ssh's connection with the payload
	r, err := transfer.Run(ctx, p.Peer, spec, each)
	if r == nil {
		return nil, err
	}
	for _, end := range []*transfer.End{r.Near, r.Far} {
		if end == nil {
			continue
		}
		for i := range end.Streams {
			s := &end.Streams[i]
			*s = transfer.Stream{Local: s.Local, Remote: s.Remote, Bytes: s.Bytes, First: s.First, Last: s.Last}
		}
	}
	r.Warnings = append(r.Warnings, "measured through ssh's one connection: its encryption and its own 2 MiB window"+
		" limit too, and its TCP cannot be seen")
	return []transfer.Outcome{{TCP: r}}, err
}
