//go:build linux && amd64

package hostile

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/e2e/harness"
	printed "github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
	"golang.org/x/sys/unix"
)

// wallClockVariable sets a constant offset of the clock.
const wallClockVariable = "FULLPIPE_TEST_WALL_CLOCK"

// wallClock returns the clock's offset of a program under wallClockProgram, at a time after its start: an
// administrator sets it forward, then back, then a wrong time server does.
func wallClock(since time.Duration) (off time.Duration) {
	if fixed, err := time.ParseDuration(os.Getenv(wallClockVariable)); err == nil {
		return fixed
	}
	steps := []time.Duration{0, 2 * time.Hour, -30 * 24 * time.Hour, 400 * 24 * time.Hour, -time.Second}
	return steps[int(since/(700*time.Millisecond))%len(steps)]
}

// wallClockProgram runs its arguments as a program whose wall clock is set again and again: it is traced, reads the
// clock by system calls since its vDSO is hidden from it, and gets other times. No other process sees them.
func wallClockProgram() error {
	os.Unsetenv(harness.ProgramVariable)
	runtime.LockOSThread() // a tracer is a thread
	cmd := exec.Command(os.Args[1], os.Args[2:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Ptrace: true, Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		return err
	}
	t := tracer{program: cmd.Process.Pid, start: time.Now(), known: map[int]bool{cmd.Process.Pid: true}}
	var status unix.WaitStatus
	if _, err := unix.Wait4(t.program, &status, unix.WALL, nil); err != nil {
		return err
	}
	if err := unix.PtraceSetOptions(t.program, unix.PTRACE_O_EXITKILL|unix.PTRACE_O_TRACESYSGOOD|unix.PTRACE_O_TRACEEXEC|
		unix.PTRACE_O_TRACECLONE|unix.PTRACE_O_TRACEFORK|unix.PTRACE_O_TRACEVFORK); err != nil {
		return err
	}
	if err := errors.Join(hideVDSO(t.program), unix.PtraceSyscall(t.program, 0)); err != nil {
		return err
	}
	code, err := t.run()
	if err == nil {
		os.Exit(code)
	}
	return err
}

type tracer struct {
	program int
	start   time.Time
	known   map[int]bool // threads whose first stop was seen
}

// run continues until the program ends, and returns its exit status.
func (t *tracer) run() (code int, err error) {
	for {
		var status unix.WaitStatus
		id, err := unix.Wait4(-1, &status, unix.WALL, nil)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return 0, err
		case id == t.program && status.Exited():
			return status.ExitStatus(), nil
		case id == t.program && status.Signaled():
			return 0, fmt.Errorf("ended by %v", status.Signal())
		case status.Stopped():
			// A thread that has ended by now can be neither inspected nor continued: wait reports its end next.
			if err := unix.PtraceSyscall(id, t.stopped(id, status)); err != nil && !errors.Is(err, unix.ESRCH) {
				return 0, err
			}
		}
	}
}

// stopped does the work of a thread's stop, and returns the signal with which the thread continues.
func (t *tracer) stopped(id int, status unix.WaitStatus) (signal int) {
	first := !t.known[id]
	t.known[id] = true
	switch signal := status.StopSignal(); {
	case signal == unix.SIGTRAP|0x80:
		t.called(id)
	case signal == unix.SIGTRAP && status.TrapCause() == unix.PTRACE_EVENT_EXEC:
		hideVDSO(id)
	case signal == unix.SIGTRAP || first && signal == unix.SIGSTOP:
	default:
		return int(signal)
	}
	return 0
}

// called changes the time that a system call returned.
func (t *tracer) called(id int) {
	var r unix.PtraceRegs
	if unix.PtraceGetRegs(id, &r) != nil || r.Orig_rax != unix.SYS_CLOCK_GETTIME || r.Rdi != unix.CLOCK_REALTIME ||
		r.Rax != 0 { // -ENOSYS before the call
		return
	}
	var seconds [8]byte
	if _, err := unix.PtracePeekData(id, uintptr(r.Rsi), seconds[:]); err != nil {
		return
	}
	off := int64(wallClock(time.Since(t.start)) / time.Second)
	binary.NativeEndian.PutUint64(seconds[:], uint64(int64(binary.NativeEndian.Uint64(seconds[:]))+off))
	unix.PtracePokeData(id, uintptr(r.Rsi), seconds[:])
}

// hideVDSO removes AT_SYSINFO_EHDR from the stack of a program that was just started, so that it asks the kernel for
// the time.
func hideVDSO(id int) error {
	var r unix.PtraceRegs
	if err := unix.PtraceGetRegs(id, &r); err != nil {
		return err
	}
	at := uintptr(r.Rsp)
	word := func() (value uint64) {
		var b [8]byte
		unix.PtracePeekData(id, at, b[:])
		at += 8
		return binary.NativeEndian.Uint64(b[:])
	}
	pastNull := func() {
		for word() != 0 {
		}
	}
	word()     // argc
	pastNull() // the arguments
	pastNull() // the environment
	const sysinfo, ignore = 33, 1
	for kind := word(); kind != 0; kind = word() {
		if kind == sysinfo {
			var b [8]byte
			binary.NativeEndian.PutUint64(b[:], ignore)
			_, err := unix.PtracePokeData(id, at-8, b[:])
			return err
		}
		word()
	}
	return errors.New("no vDSO on the stack")
}

// TestWallClockIsSet changes the wall clock of either end during a test. The length and the figures of the test stay
// the same, because durations come from the monotonic clock.
func TestWallClockIsSet(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program := harness.Program(t)
	set := []string{"env", harness.ProgramVariable + "=wall-clock", self}
	if out, err := exec.Command(set[0], append(set[1:], "date", "+%Y")...).CombinedOutput(); err != nil || len(out) == 0 {
		t.Fatalf("date: %v: %s", err, out)
	}
	for _, c := range []struct {
		name           string
		client, server []string
	}{{"the client's", set, nil}, {"the server's", nil, set}, {"both", set, set}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, c.server...)
			for _, way := range []transfer.Direction{transfer.Up, transfer.Down} {
				args := append(c.client, program, "measure", "fullpipe://"+s.address, "-t", "3s", "--write-rate", "20mbit",
					"--direction", string(way), "--json", "--no-history")
				cmd := exec.Command(args[0], args[1:]...)
				cmd.Env = append(os.Environ(), "FULLPIPE_KEY="+s.key.String())
				began := time.Now()
				out, err := cmd.Output()
				took := time.Since(began)
				if err != nil {
					t.Fatalf("%s: %v: %s", way, err, problemsOf(err))
				}
				checkMonotonicTimes(t, way, out, took)
				checkClockEvidence(t, out, way == transfer.Up, c.client != nil, c.server != nil)
			}
		})
	}
}

func problemsOf(err error) string {
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return string(exit.Stderr)
	}
	return ""
}

// clockRate is the rate at which programs write under a changed clock, in bit/s, and oneWrite their largest write.
const clockRate, oneWrite = 20e6, 128 << 10

// checkMonotonicTimes checks the times and counts of a measurement of 3 s at clockRate with the given duration by a
// monotonic clock. A busy machine makes it longer and lets it move less; each step of the wall clock is 2 h or more.
func checkMonotonicTimes(t *testing.T, way transfer.Direction, out []byte, took time.Duration) {
	t.Helper()
	var doc printed.Measure
	if err := json.Unmarshal(out, &doc); err != nil || len(doc.Directions) != 1 || doc.TookS == nil {
		t.Fatalf("%s: %v: %s", way, err, out)
	}
	d := doc.Directions[0]
	if took < 3*time.Second || *doc.TookS < 3 || *doc.TookS > took.Seconds() || *d.DurationS <= 0 ||
		*d.DurationS > *doc.TookS {
		t.Errorf("%s: a test of 3 s took %v; it says %.3f s, and %.3f s of data", way, took, *doc.TookS, *d.DurationS)
	}
	at, sum := 0.0, int64(0)
	for _, i := range d.Intervals {
		if i.StartS != at || i.EndS <= i.StartS || i.EndS > *doc.TookS {
			t.Errorf("%s: an interval from %.3f s to %.3f s begins at %.3f s", way, at, i.EndS, i.StartS)
		}
		at, sum = i.EndS, sum+i.Bytes
	}
	// The last progress that the far end did not report is only in its result.
	if sum == 0 || sum > *d.Bytes || way == transfer.Down && sum != *d.Bytes {
		t.Errorf("%s: intervals of %d bytes, in all %d", way, sum, *d.Bytes)
	}
	if most := clockRate/8*took.Seconds() + oneWrite; float64(*d.Bytes) > most {
		t.Errorf("%s: %d bytes in %v", way, *d.Bytes, took)
	}
}

// checkClockEvidence checks that a measurement names the ends at which the clock was set, and that its confidence is
// lower.
func checkClockEvidence(t *testing.T, out []byte, up, client, server bool) {
	t.Helper()
	var doc printed.Measure
	if err := json.Unmarshal(out, &doc); err != nil || len(doc.Directions) != 1 {
		t.Fatalf("%v: %s", err, out)
	}
	var steps verdict.Values
	for _, e := range doc.Directions[0].Evidence {
		if e.Code == verdict.ClockTrouble {
			steps = e.Values
		}
	}
	near, far := "receiver_step_s", "sender_step_s"
	if up {
		near, far = far, near
	}
	if (steps[near] != 0) != client || (steps[far] != 0) != server || doc.Directions[0].Confidence == verdict.High {
		t.Errorf("up %v, the client's clock was set %v, the server's %v: %s confidence, %v", up, client, server,
			doc.Directions[0].Confidence, steps)
	}
}
