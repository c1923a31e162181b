package lab

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fullpipe-net/fullpipe/internal/link"
)

// inside is the engine as its own process sees it.
type inside struct {
	control *control
	path    link.Path
	hosts   map[string]*host
	carrier *carrier
	tap     *tap // or nil

	mu       sync.Mutex  // guards what follows, and sending
	children map[int]int // PID to process ID
	pids     map[int]int // process ID to PID
	seen     map[syscall.Signal]int
	spawned  chan struct{}
}

// controlFD is where the engine finds its control socket.
const controlFD = 3

func engineMain() {
	runtime.LockOSThread() // so that no thrown-away thread is the process's first
	debug.SetGCPercent(400)
	c, err := newControl(os.NewFile(controlFD, "control"))
	if err != nil {
		fmt.Fprintln(os.Stderr, "fullpipe: lab engine:", err)
		os.Exit(1)
	}
	e := &inside{control: c, hosts: map[string]*host{}, children: map[int]int{}, pids: map[int]int{},
		seen: map[syscall.Signal]int{}, spawned: make(chan struct{}, 1)}
	e.catchSignals()
	privateMounts()
	go e.reap()
	for {
		var r request
		files, err := c.receive(&r)
		if err != nil {
			os.Exit(0) // whoever used this lab has gone, and so goes the PID namespace
		}
		e.handle(r, files)
		for _, fd := range files {
			unix.Close(fd)
		}
	}
}

// privateMounts gives the lab a /proc that shows its own processes. Where that is not
// allowed the old one stays: programs still work, but see other process numbers there.
func privateMounts() {
	if unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, "") == nil {
		unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "")
	}
}

// catchSignals counts what comes from the terminal, which also went to the near
// program, so that it is not passed on a second time.
func (e *inside) catchSignals() {
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, unix.SIGINT, unix.SIGTERM, unix.SIGQUIT, unix.SIGHUP, unix.SIGUSR1, unix.SIGUSR2)
	go func() {
		for s := range signals {
			e.mu.Lock()
			e.seen[s.(syscall.Signal)]++
			e.mu.Unlock()
		}
	}()
}

func (e *inside) answer(r reply) {
	if err := e.control.send(r); err != nil {
		os.Exit(0)
	}
}

func (e *inside) handle(r request, files []int) {
	back := reply{Tag: r.Tag, ID: r.ID}
	var err error
	e.mu.Lock()
	defer e.mu.Unlock()
	switch r.Op {
	case opBuild:
		err = e.build(r.Path, files)
	case opStart:
		back.PID, err = e.spawn(r, files)
		var not *NotRun
		if errors.As(err, &not) {
			back.Status, err = not.Status, not.Err
		}
	case opSignal:
		err = e.kill(r.ID, syscall.Signal(r.Signal))
	case opForward:
		go e.forward(r.ID, syscall.Signal(r.Signal), r.Seen)
	case opFinish:
		if e.tap != nil {
			err = e.tap.finish()
			e.tap = nil
		}
	case opListening:
		back.Listening, err = e.listening(r.End)
	case opCounters:
		up, down := e.carrier.counters()
		back.Counters = []link.Counters{up, down}
	default:
		err = fmt.Errorf("unknown request %q", r.Op)
	}
	if err != nil {
		back.Error = err.Error()
		var hint interface{ Try() string }
		if errors.As(err, &hint) {
			back.Hint = hint.Try()
		}
	}
	e.answer(back)
}

func (e *inside) build(p *link.Path, files []int) error {
	if len(e.hosts) > 0 {
		return errors.New("built already")
	}
	e.path = *p
	nearWays, farWays := []way{{nearOutside, farOutside}}, []way{{farOutside, nearOutside}}
	if p.VPN.Kind == link.Gateway { // on the same device: it is between the hosts that packets part
		nearWays, farWays = append(nearWays, way{nearInside, farInside}), append(farWays, way{farInside, nearInside})
	}
	var tuns []*tun
	for _, end := range []struct {
		name  string
		stack link.Stack
		from  link.Config // what reaches it
		ways  []way
	}{{near, p.Near, p.Down, nearWays}, {far, p.Far, p.Up, farWays}} {
		var t *tun
		var h *host
		err := onThread(func() (err error) {
			h, t, err = newHost(end.name, end.stack, max(1500, p.Up.MTU, p.Down.MTU), segmentOf(end.from, p.VPN), end.ways...)
			return err
		})
		if err != nil {
			return fmt.Errorf("%s end: %w", end.name, err)
		}
		e.hosts[end.name] = h
		tuns = append(tuns, t)
	}
	if len(files) > 0 {
		file, err := unix.FcntlInt(uintptr(files[0]), unix.F_DUPFD_CLOEXEC, 0)
		if err != nil {
			return fmt.Errorf("capture: %w", err)
		}
		slowest := max(p.Up.Delay+p.Up.Jitter+p.Up.HoldBack, p.Down.Delay+p.Down.Jitter+p.Down.HoldBack)
		if e.tap, err = newTap(os.NewFile(uintptr(file), "capture"), slowest); err != nil {
			return fmt.Errorf("capture: %w", err)
		}
	}
	e.carrier = carry(p, tuns[0], tuns[1], e.tap)
	if p.VPN.Kind == link.WireGuard {
		return tunnel(e.hosts[near], e.hosts[far], p.VPN.MTU)
	}
	return nil
}

// segmentOf is the payload of the largest segments, without options, that a lane and a
// VPN let through to an old host, whose own device takes 1500 bytes.
func segmentOf(c link.Config, v link.VPN) int {
	const device, headers = 1500, 40
	most := device
	for _, mtu := range []int{c.Largest(false), v.MTU} {
		if mtu > 0 {
			most = min(most, mtu)
		}
	}
	return most - headers
}

// onThread runs f on a thread that is thrown away afterwards, whatever namespace f left
// it in.
func onThread(f func() error) error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread()
		done <- f()
	}()
	return <-done
}

func (e *inside) spawn(r request, files []int) (int, error) {
	h := e.hosts[r.End]
	if h == nil || len(files) != 3 || len(r.Args) == 0 {
		return 0, errors.New("malformed start")
	}
	path, err := lookUp(r.Args[0], r.Dir)
	if err != nil {
		return 0, err
	}
	attr := &syscall.ProcAttr{Dir: r.Dir, Env: environment(os.Environ(), e.path, r.End, h.stack, r.Env),
		Files: []uintptr{uintptr(files[0]), uintptr(files[1]), uintptr(files[2])},
		Sys:   &syscall.SysProcAttr{Setpgid: r.OwnGroup}}
	var pid int
	err = onThread(func() error {
		if err := unix.Setns(h.namespace, unix.CLONE_NEWNET); err != nil {
			return fmt.Errorf("entering the %s end: %w", r.End, err)
		}
		pid, err = syscall.ForkExec(path, r.Args, attr)
		return err
	})
	if err != nil {
		return 0, &NotRun{r.Args[0], exitNotRun(err), err}
	}
	e.children[pid], e.pids[r.ID] = r.ID, pid
	select {
	case e.spawned <- struct{}{}:
	default:
	}
	return pid, nil
}

func lookUp(name, dir string) (string, error) {
	if dir != "" && strings.Contains(name, "/") && !filepath.IsAbs(name) {
		name = filepath.Join(dir, name)
	}
	path, err := exec.LookPath(name)
	if err != nil && !errors.Is(err, exec.ErrDot) {
		var inner *exec.Error
		if errors.As(err, &inner) {
			err = inner.Err
		}
		return "", &NotRun{name, exitNotRun(err), err}
	}
	return path, nil
}

func exitNotRun(err error) int {
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, os.ErrNotExist) {
		return 127
	}
	return 126
}

// reap waits for every child there is: as the first process of its namespace the
// engine inherits its programs' orphans too.
func (e *inside) reap() {
	for {
		var status unix.WaitStatus
		pid, err := unix.Wait4(-1, &status, 0, nil)
		switch {
		case errors.Is(err, unix.ECHILD):
			<-e.spawned
			continue
		case err != nil:
			continue
		}
		e.mu.Lock()
		if id, ours := e.children[pid]; ours {
			delete(e.children, pid)
			delete(e.pids, id)
			code := status.ExitStatus()
			if status.Signaled() {
				code = 128 + int(status.Signal())
			}
			e.answer(reply{ID: id, Status: code})
		}
		e.mu.Unlock()
	}
}

// listening looks for a TCP socket in state LISTEN (0A).
func (e *inside) listening(end string) (found bool, err error) {
	h := e.hosts[end]
	if h == nil {
		return false, errors.New("no such end")
	}
	err = onThread(func() error {
		if err := unix.Setns(h.namespace, unix.CLONE_NEWNET); err != nil {
			return err
		}
		for _, name := range []string{"tcp", "tcp6"} {
			table, err := os.ReadFile("/proc/thread-self/net/" + name)
			if err != nil && !errors.Is(err, os.ErrNotExist) {
				return err
			}
			for line := range strings.Lines(string(table)) {
				fields := strings.Fields(line)
				found = found || len(fields) > 3 && fields[3] == "0A"
			}
		}
		return nil
	})
	return found, err
}

func (e *inside) kill(id int, s syscall.Signal) error {
	pid, running := e.pids[id]
	if !running {
		return nil
	}
	return unix.Kill(pid, s)
}

// forward passes a signal on that the lab's user got for the n-th time, unless it comes
// to this process as well: then it went to the whole process group and the near program
// has it.
func (e *inside) forward(id int, s syscall.Signal, n int) {
	const wait = 50 * time.Millisecond
	for deadline := time.Now().Add(wait); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		e.mu.Lock()
		had := e.seen[s] >= n
		e.mu.Unlock()
		if had {
			return
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.seen[s]++
	e.kill(id, s)
}
