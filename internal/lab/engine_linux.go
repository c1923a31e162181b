package lab

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fullpipe-net/fullpipe/internal/link"
)

// inside is the engine in its own process.
type inside struct {
	control *control
	path    link.Path
	hosts   map[string]*host
	link    *linkProcess // nil until build

	mu       sync.Mutex       // guards what follows, and sending
	children map[int]int      // PID to process ID
	pids     map[int]int      // process ID to PID
	local    map[int]chan int // PID of a program that another one in the lab started, to the channel for its status
	seen     map[syscall.Signal]int
	spawned  chan struct{}
}

// controlFD is where the engine finds its control socket.
const controlFD = 3

func engineMain() {
	runtime.LockOSThread() // so that the process's first thread is never discarded
	debug.SetGCPercent(400)
	c, err := newControl(os.NewFile(controlFD, "control"))
	if err != nil {
		fmt.Fprintln(os.Stderr, "fullpipe: lab engine:", err)
		os.Exit(1)
	}
	e := &inside{control: c, hosts: map[string]*host{}, children: map[int]int{}, pids: map[int]int{},
		local: map[int]chan int{},
		seen:  map[syscall.Signal]int{}, spawned: make(chan struct{}, 1)}
	e.catchSignals()
	privateMounts()
	go e.reap()
	for {
		var r request
		files, err := c.receive(&r)
		if err != nil {
			os.Exit(0) // the lab's user is gone; the PID namespace ends with this process
		}
		e.handle(r, files)
		for _, fd := range files {
			unix.Close(fd)
		}
	}
}

// privateMounts gives the lab a /proc with its own processes. Without permission the old one stays: programs work,
// but see other process numbers there.
func privateMounts() {
	if unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, "") == nil {
		unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "")
	}
}

// catchSignals counts signals of the terminal. The near program receives them too, so they are not forwarded.
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
		err = withheld(e.build(r.Path, files))
	case opStart:
		back.PID, err = e.spawn(r, files)
		var not *NotRun
		if errors.As(err, &not) {
			back.Status = not.Status
			err = not.Err
		}
	case opSignal:
		err = e.kill(r.ID, syscall.Signal(r.Signal))
	case opForward:
		go e.forward(r.ID, syscall.Signal(r.Signal), r.Seen)
	case opFinish:
		_, err = e.link.ask(request{Op: opFinish})
	case opListening:
		back.Listening, err = e.listening(r.End)
	case opCounters:
		var n reply
		n, err = e.link.ask(request{Op: opCounters})
		back.Counters = n.Counters
		back.Lateness = n.Lateness
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
	nearWays := []way{{nearOutside, farOutside}}
	farWays := []way{{farOutside, nearOutside}}
	if p.VPN.Kind == link.Gateway { // packets separate between the hosts, on one device
		nearWays = append(nearWays, way{nearInside, farInside})
		farWays = append(farWays, way{farInside, nearInside})
	}
	var tuns []*tun
	for _, end := range []struct {
		name  string
		stack link.Stack
		from  link.Config // traffic that reaches it
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
	if err := e.startLink(p, tuns[0], tuns[1], files); err != nil {
		return err
	}
	if err := e.calibrate(p); err != nil {
		return err
	}
	if err := e.startAtFar(e.hosts[near]); err != nil {
		return fmt.Errorf("near end: %w", err)
	}
	for _, h := range e.hosts {
		if err := e.serveAccount(h); err != nil {
			return fmt.Errorf("%s end: %w", h.name, err)
		}
	}
	if p.VPN.Kind == link.WireGuard {
		return tunnel(e.hosts[near], e.hosts[far], p.VPN.MTU)
	}
	return nil
}

// startLink hands the devices, and a capture's file, to the process that carries.
func (e *inside) startLink(p *link.Path, nearTUN, farTUN *tun, capture []int) (err error) {
	e.link, err = startLink(fitsRealTime(p))
	if err != nil {
		return err
	}
	descriptors := append([]int{nearTUN.fd, farTUN.fd}, capture...)
	files := make([]*os.File, len(descriptors))
	for i, fd := range descriptors {
		copied, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
		if err != nil {
			return err
		}
		files[i] = os.NewFile(uintptr(copied), "link")
		defer files[i].Close()
	}
	_, err = e.link.ask(request{Op: opBuild, Path: p}, files...)
	unix.Close(nearTUN.fd)
	unix.Close(farTUN.fd)
	return err
}

// segmentOf returns the payload of the largest segments, without options, that a lane and a VPN carry to an old
// host, whose device has an MTU of 1500 bytes.
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

// forward forwards the n-th signal of the lab's user, unless this process received it too: then the whole process
// group has it.
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
