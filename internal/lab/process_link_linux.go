package lab

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fullpipe-net/fullpipe/internal/link"
	"github.com/fullpipe-net/fullpipe/internal/secret"
)

// linkProcess is the engine's side of the link process.
type linkProcess struct {
	pid     int
	mu      sync.Mutex // locked from a request to its reply
	control *control
}

func startLink(realTime bool) (*linkProcess, error) {
	ours, theirs, err := controlPair()
	if err != nil {
		return nil, err
	}
	defer theirs.Close()
	attr := &syscall.ProcAttr{Env: secret.Without(os.Environ()), Files: []uintptr{0, 1, 2, theirs.Fd()},
		Sys: &syscall.SysProcAttr{Setsid: true}}
	var pid int
	err = onThread(func() (err error) {
		raisePriority(realTime)
		pid, err = syscall.ForkExec("/proc/self/exe", []string{linkName}, attr)
		return err
	})
	if err != nil {
		ours.conn.Close()
		return nil, fmt.Errorf("starting the link: %w", err)
	}
	return &linkProcess{pid: pid, control: ours}, nil
}

// maxRealTimeRate is the largest rate, in bit/s, of a real-time link. A faster link would take the processors from the
// programs that it carries.
const maxRealTimeRate = 1e9

// fitsRealTime reports whether both directions are at most that fast.
func fitsRealTime(p *link.Path) bool {
	return p.Up.Rate > 0 && p.Up.Rate <= maxRealTimeRate && p.Down.Rate > 0 && p.Down.Rate <= maxRealTimeRate
}

// raisePriority makes the calling thread, and the link that it starts, run as soon as a timer fires. It sets real-time
// scheduling if wanted and permitted (CAP_SYS_NICE), otherwise the largest weight and a short slice (Linux 6.12),
// otherwise the slice alone.
//
// All threads of the link need the same priority, so it is set before the program starts. Go's sysmon briefly takes
// over a thread in a system call (runtime.setBlockOnExitSyscall, Go 1.26). A real-time thread that wakes up on the
// same processor then spins for 35 to 90 ms, until Linux runs ordinary threads.
func raisePriority(realTime bool) {
	attr := unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_FIFO, Priority: 1}
	if realTime && unix.SchedSetAttr(0, &attr, 0) == nil {
		return
	}
	attr.Policy = unix.SCHED_NORMAL
	attr.Priority = 0
	attr.Runtime = 100_000
	attr.Nice = -20
	if unix.SchedSetAttr(0, &attr, 0) != nil {
		attr.Nice = 0
		unix.SchedSetAttr(0, &attr, 0) // without permission the machine is only less exact under load
	}
}

func (p *linkProcess) ask(r request, files ...*os.File) (back reply, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.control.send(&r, files...); err != nil {
		return back, fmt.Errorf("link: %w", err)
	}
	if _, err := p.control.receive(&back); err != nil {
		return back, fmt.Errorf("link: %w", err)
	}
	if back.Error != "" {
		return back, errors.New(back.Error)
	}
	return back, nil
}

// linkMain is the link process. It receives a path and the two devices, then serves requests until the engine and
// its PID namespace end.
func linkMain() {
	debug.SetGCPercent(400)
	runtime.GOMAXPROCS(max(4, runtime.NumCPU())) // so that a thread never waits for a processor after a system call
	// The session's weight; without CAP_SYS_NICE it stays ordinary.
	os.WriteFile("/proc/self/autogroup", []byte("-20"), 0)
	c, err := newControl(os.NewFile(controlFD, "control"))
	if err != nil {
		fmt.Fprintln(os.Stderr, "fullpipe: lab link:", err)
		os.Exit(1)
	}
	var l carrying
	for {
		var r request
		files, err := c.receive(&r)
		if err != nil {
			os.Exit(0)
		}
		back, err := l.handle(r, files)
		if err != nil {
			back.Error = err.Error()
		}
		if c.send(back) != nil {
			os.Exit(0)
		}
	}
}

// carrying is the link in its own process.
type carrying struct {
	carrier *carrier
	path    link.Path
	tap     *tap // or nil
	floor   time.Duration
}

// handle runs a request of the engine; it owns the request's files.
func (l *carrying) handle(r request, files []int) (back reply, err error) {
	switch {
	case r.Op == opBuild && l.carrier == nil && len(files) >= 2:
		l.path = *r.Path
		if len(files) > 2 {
			slowest := max(l.path.Up.Delay+l.path.Up.Jitter+l.path.Up.HoldBack, l.path.Down.Delay+l.path.Down.Jitter+
				l.path.Down.HoldBack)
			l.tap, err = newTap(os.NewFile(uintptr(files[2]), "capture"), slowest)
			if err != nil {
				return back, fmt.Errorf("capture: %w", err)
			}
		}
		for _, fd := range files[:2] { // read until there is no more, not waited for
			if err := unix.SetNonblock(fd, true); err != nil {
				return back, err
			}
		}
		l.carrier, err = carry(&l.path, &tun{files[0]}, &tun{files[1]}, l.tap)
	case r.Op == opCounters && l.carrier != nil:
		at := clock()
		up, down, upLate, downLate := l.carrier.account()
		back.Counters = []link.Counters{up, down}
		back.Lateness = &Lateness{Up: upLate, Down: downLate, RTT: l.path.RTT, Floor: l.floor, At: time.Duration(at)}
	case r.Op == opProbe && l.carrier != nil:
		l.carrier.probe(r.Delay)
	case r.Op == opCarry && l.carrier != nil:
		up, down := l.path.Lanes()
		l.carrier.use(up, down, l.tap, r.Early)
		l.floor = r.Floor
	case r.Op == opFinish:
		if l.tap != nil {
			err = l.tap.finish()
			l.tap = nil
		}
	default:
		err = fmt.Errorf("unknown request %q", r.Op)
	}
	return back, err
}
