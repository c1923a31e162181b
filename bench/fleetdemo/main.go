//go:build linux

// Command fleetdemo shows a fleet on one machine: a hub and eight hosts in network namespaces of their own. Two hosts
// have a slow line, and the owner of one limits its rate. It prints the grid, opens its page, and ends by itself.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	hosts      = 8
	insideName = "FULLPIPE_FLEETDEMO_INSIDE"
	dialFile   = 3 // the socket for connections into the namespaces
	fillTime   = 3 * time.Minute
)

var (
	program = flag.String("program", "", "fullpipe")
	hub     = flag.String("hub", "", "fullpipe-hub")
	noOpen  = flag.Bool("no-open", false, "open no browser, and end when the grid is full")
	stay    = flag.Duration("stay", 2*time.Minute, "how long the page stays after the grid is full")
)

func main() {
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	run := outside
	if os.Getenv(insideName) != "" {
		run = inside
	}
	if err := run(ctx); err != nil && ctx.Err() == nil {
		fmt.Fprintln(os.Stderr, "fleetdemo:", err)
		os.Exit(1)
	}
}

// outside starts the namespaces and forwards the page's port into them.
func outside(ctx context.Context) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	defer l.Close()
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	ours := os.NewFile(uintptr(pair[0]), "dial")
	theirs := os.NewFile(uintptr(pair[1]), "dial")
	defer ours.Close()
	cmd := exec.CommandContext(ctx, "/proc/self/exe", os.Args[1:]...)
	cmd.Env = append(os.Environ(), insideName+"="+strconv.Itoa(l.Addr().(*net.TCPAddr).Port))
	cmd.ExtraFiles = []*os.File{theirs}
	cmd.Stderr = os.Stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL,
		Cloneflags: syscall.CLONE_NEWNET | syscall.CLONE_NEWNS | syscall.CLONE_NEWPID}
	if os.Getuid() != 0 {
		cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("new namespaces: %w", err)
	}
	theirs.Close()
	go forward(l, ours)
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		fmt.Println(lines.Text())
		if page, ok := strings.CutPrefix(lines.Text(), "page: "); ok && !*noOpen {
			_ = exec.Command("xdg-open", page).Start() // a machine without a desktop
		}
	}
	return cmd.Wait()
}

// forward copies each connection to one inside the namespaces. The child sends the socket of that one.
func forward(l net.Listener, ask *os.File) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		far, err := dialInside(ask)
		if err != nil {
			conn.Close()
			continue
		}
		go func() {
			defer conn.Close()
			defer far.Close()
			go func() { _, _ = io.Copy(far, conn) }()
			_, _ = io.Copy(conn, far)
		}()
	}
}

func dialInside(ask *os.File) (net.Conn, error) {
	if _, err := ask.Write([]byte{1}); err != nil {
		return nil, err
	}
	rights := make([]byte, unix.CmsgSpace(4))
	_, n, _, _, err := unix.Recvmsg(int(ask.Fd()), make([]byte, 1), rights, 0)
	if err != nil {
		return nil, err
	}
	messages, err := unix.ParseSocketControlMessage(rights[:n])
	if err != nil || len(messages) == 0 {
		return nil, errors.New("no connection")
	}
	files, err := unix.ParseUnixRights(&messages[0])
	if err != nil || len(files) == 0 {
		return nil, errors.New("no connection")
	}
	f := os.NewFile(uintptr(files[0]), "page")
	defer f.Close()
	return net.FileConn(f)
}

// serveDials connects to the page for each request of the parent and sends the socket.
func serveDials(page string) {
	for {
		if n, err := unix.Read(dialFile, make([]byte, 1)); err != nil || n == 0 {
			os.Exit(1) // the parent has ended
		}
		var rights []byte
		conn, err := net.Dial("tcp", page)
		if err == nil {
			f, fileErr := conn.(*net.TCPConn).File()
			if fileErr == nil {
				rights = unix.UnixRights(int(f.Fd()))
				_ = unix.Sendmsg(dialFile, []byte{1}, rights, nil, 0)
				f.Close()
			}
			conn.Close()
		}
		if rights == nil {
			_ = unix.Sendmsg(dialFile, []byte{0}, nil, nil, 0)
		}
	}
}

// inside runs the fleet. All its processes end with this one, which is the first of its PID namespace.
func inside(ctx context.Context) error {
	dir, err := os.MkdirTemp("", "fleetdemo")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	page := "127.0.0.1:" + os.Getenv(insideName)
	if err := hostsUp(); err != nil {
		return err
	}
	fmt.Printf("hosts: %d, in network namespaces; six have lines of 300 Mbit/s, h7 and h8 of 30 Mbit/s;\n"+
		"       the owner of h6 allows 100 Mbit/s\n", hosts)
	open, join, err := startHub(ctx, dir, page)
	if err != nil {
		return err
	}
	go serveDials(page)
	fmt.Printf("hub:   fullpipe-hub serve\nagent: FULLPIPE_JOIN=TOKEN fullpipe agent, on each host\npage: %s\n\n", open)
	if err := applyMesh(dir); err != nil {
		return err
	}
	for i := 1; i <= hosts; i++ {
		if err := startAgent(ctx, dir, i, join); err != nil {
			return err
		}
	}
	began := time.Now()
	if err := awaitGrid(ctx, dir); err != nil {
		return err
	}
	grid, err := ask(dir, "grid")
	if err != nil {
		return err
	}
	fmt.Printf("\n%s\nrows send, columns receive; the letter is the limiter. The grid of %d paths was full after %.0f s.\n", grid,
		hosts*(hosts-1), time.Since(began).Seconds())
	if *noOpen {
		return nil
	}
	fmt.Printf("the page stays for %s; Ctrl-C ends\n", *stay)
	select {
	case <-ctx.Done():
	case <-time.After(*stay):
	}
	return nil
}

// hostsUp makes the namespaces of the hosts on one bridge.
func hostsUp() error {
	script := `set -e
mount -t proc proc /proc
mount -t tmpfs none /run
mkdir /run/netns
ip link set lo up
ip link add br0 type bridge
ip addr add 10.78.0.1/16 dev br0
ip link set br0 up
for i in $(seq ` + strconv.Itoa(hosts) + `); do
	ip netns add h$i
	ip link add v$i type veth peer name eth0 netns h$i
	ip link set v$i master br0 up
	ip -n h$i addr add 10.78.1.$i/16 dev eth0
	ip -n h$i link set eth0 up
	ip -n h$i link set lo up
done
line() { # line HOST RATE BURST
	tc qdisc add dev v$1 root tbf rate $2 burst $3 latency 30ms
	ip netns exec h$1 tc qdisc add dev eth0 root tbf rate $2 burst $3 latency 30ms
}
for i in 1 2 3 4 5 6; do line $i 300mbit 128k; done
for i in 7 8; do line $i 30mbit 32k; done`
	out, err := exec.Command("sh", "-c", script).CombinedOutput()
	if err != nil {
		return fmt.Errorf("the hosts' namespaces: %w: %s", err, out)
	}
	return nil
}

// child returns a command with the state directory of a host.
func child(ctx context.Context, dir, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Env = append(os.Environ(), "FULLPIPE_STATE="+filepath.Join(dir, name))
	cmd.Stderr = os.Stderr
	return cmd
}

func startHub(ctx context.Context, dir, page string) (open, join string, err error) {
	cmd := child(ctx, dir, "hub", *hub, "serve", "--json", "--listen", "10.78.0.1:8443", "--page", page)
	out, err := cmd.StdoutPipe()
	if err != nil {
		return "", "", err
	}
	if err := cmd.Start(); err != nil {
		return "", "", err
	}
	lines := bufio.NewReader(out)
	first, err := lines.ReadBytes('\n')
	if err != nil {
		return "", "", fmt.Errorf("fullpipe-hub serve: %w", err)
	}
	var ready struct{ Open, Join string }
	err = json.Unmarshal(first, &ready)
	go func() { _, _ = io.Copy(io.Discard, lines) }()
	return ready.Open, ready.Join, err
}

func startAgent(ctx context.Context, dir string, i int, join string) error {
	name := fmt.Sprintf("h%d", i)
	args := []string{"ip", "netns", "exec", name, *program, "agent", "--quiet", "--name", name, "--join", join}
	if i == 6 {
		limits := filepath.Join(dir, "h6.toml")
		if err := os.WriteFile(limits, []byte("most-rate = \"100mbit\"\n"), 0o600); err != nil {
			return err
		}
		args = append(args, "--limits", limits)
	}
	return child(ctx, dir, name, args...).Start()
}

const meshFile = `[site.branch]
agents = ["h7", "h8"]
uplink = "branch-line"
[link.branch-line]
[task.throughput]
between = ["*"]
every = "10m"
time = "1s"
most = "50MB"
`

func applyMesh(dir string) error {
	file := filepath.Join(dir, "mesh.toml")
	if err := os.WriteFile(file, []byte(meshFile), 0o600); err != nil {
		return err
	}
	_, err := ask(dir, "mesh", "apply", file)
	return err
}

func ask(dir string, args ...string) (string, error) {
	cmd := child(context.Background(), dir, "hub", append([]string{*hub}, args...)...)
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("fullpipe-hub %s: %w", strings.Join(args, " "), err)
	}
	return string(out), nil
}

// awaitGrid waits until each path has a result.
func awaitGrid(ctx context.Context, dir string) error {
	deadline := time.After(fillTime)
	for shown := -1; ; {
		text, err := ask(dir, "grid", "--json")
		if err != nil {
			return err
		}
		var doc struct {
			Rows []struct{ Cells []struct{ State string } }
		}
		if err := json.Unmarshal([]byte(text), &doc); err != nil {
			return err
		}
		done := 0
		for _, row := range doc.Rows {
			for _, c := range row.Cells {
				if c.State == "done" {
					done++
				}
			}
		}
		if done != shown {
			shown = done
			fmt.Fprintf(os.Stderr, "\r%d of %d paths measured ", done, hosts*(hosts-1))
		}
		if done == hosts*(hosts-1) {
			fmt.Fprintln(os.Stderr)
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-deadline:
			return fmt.Errorf("only %d of %d paths have a result after %s", done, hosts*(hosts-1), fillTime)
		case <-time.After(time.Second):
		}
	}
}
