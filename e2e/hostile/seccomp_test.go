//go:build linux

package hostile

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/fullpipe-net/fullpipe/e2e/harness"
	"golang.org/x/sys/unix"
)

// confined are system calls that containers withhold, Docker's and Kubernetes' defaults and
// stricter ones: by their numbers, or as sockets of a family.
var confined = map[string][]uint32{
	"namespaces": {unix.SYS_UNSHARE, unix.SYS_SETNS, unix.SYS_MOUNT, unix.SYS_PIVOT_ROOT},
	"tracing":    {unix.SYS_PERF_EVENT_OPEN, unix.SYS_BPF, unix.SYS_PTRACE},
	"scheduling": {unix.SYS_SCHED_SETSCHEDULER, unix.SYS_SCHED_SETATTR, unix.SYS_SCHED_SETAFFINITY, unix.SYS_SETPRIORITY,
		unix.SYS_SCHED_GETAFFINITY},
	"descriptors": {unix.SYS_PIDFD_OPEN, unix.SYS_PIDFD_SEND_SIGNAL, unix.SYS_MEMFD_CREATE, unix.SYS_PRLIMIT64},
	"clocks":      {unix.SYS_ADJTIMEX, unix.SYS_CLOCK_ADJTIME},
	"sockets":     nil,
}

// confineProgram withholds what FULLPIPE_E2E_WITHHELD names, with the error number
// FULLPIPE_E2E_ERRNO, and becomes its arguments.
func confineProgram() error {
	var errno uint32
	if _, err := fmt.Sscan(os.Getenv("FULLPIPE_E2E_ERRNO"), &errno); err != nil {
		return err
	}
	load := func(offset uint32) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: offset}
	}
	equal := func(k uint32, jt, jf uint8) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jt: jt, Jf: jf, K: k}
	}
	answer := func(k uint32) unix.SockFilter { return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: k} }
	refuse := answer(unix.SECCOMP_RET_ERRNO | errno)
	filter := []unix.SockFilter{load(0)} // struct seccomp_data: the number, then at 16 the first argument
	for name := range strings.SplitSeq(os.Getenv("FULLPIPE_E2E_WITHHELD"), ",") {
		for _, number := range confined[name] {
			filter = append(filter, equal(number, 0, 1), refuse)
		}
		if name == "sockets" { // seen from the end, as those that know no such family
			filter = append(filter, equal(unix.SYS_SOCKET, 0, 7), load(16), equal(unix.AF_NETLINK, 3, 0),
				equal(unix.AF_PACKET, 2, 0), equal(unix.AF_ALG, 1, 0), answer(unix.SECCOMP_RET_ALLOW), refuse, load(0))
		}
	}
	filter = append(filter, answer(unix.SECCOMP_RET_ALLOW))
	runtime.LockOSThread()
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	prog := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	if _, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC,
		uintptr(unsafe.Pointer(&prog))); errno != 0 {
		return fmt.Errorf("seccomp: %w", errno)
	}
	os.Unsetenv(harness.ProgramVariable)
	return syscall.Exec(os.Args[1], os.Args[1:], os.Environ())
}

// TestSeccomp withholds system calls, as a container does. Each command does the part that works without them, or
// reports the missing call and the remedy; none crashes or hangs.
func TestSeccomp(t *testing.T) {
	t.Parallel()
	program := harness.Program(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	s := newSite(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	busy, err := net.Dial("tcp", l.Addr().String()) // the connection that why examines
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close(); busy.Close() }) // after the parallel subtests
	go func() {
		if far, err := l.Accept(); err == nil {
			io.Copy(far, far)
		}
	}()
	go func() {
		for word := []byte("."); ; time.Sleep(10 * time.Millisecond) {
			busy.Write(word)
			if _, err := io.ReadFull(busy, word); err != nil {
				return
			}
		}
	}()
	lines := []string{"measure fullpipe://FAR -t 300ms --write-rate 20mbit",
		"measure fullpipe://FAR -t 300ms --udp --rate 1mbit", "measure lab:rate=10mbit,rtt=10ms -t 300ms --no-history",
		"lab rate=10mbit,rtt=10ms -- true", "audit", "status", "why BUSY", "watch --for 2s", "exec -- true",
		"plan --rate 1gbit --rtt 40ms"}
	needs := map[string]string{"measure lab": "namespaces sockets", "lab": "namespaces sockets", "why": "sockets",
		"watch": "sockets", "exec": "tracing sockets"}
	for _, c := range []struct {
		withheld string
		errno    syscall.Errno
	}{{"namespaces", unix.EPERM}, {"tracing", unix.EPERM}, {"scheduling", unix.EPERM}, {"descriptors", unix.EPERM},
		{"descriptors", unix.ENOSYS}, {"clocks", unix.EPERM}, {"sockets", unix.EAFNOSUPPORT}, {"sockets", unix.EPERM}} {
		for _, line := range lines {
			t.Run(fmt.Sprintf("%s %v: %s", c.withheld, c.errno, line), func(t *testing.T) {
				t.Parallel()
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // ends a command that hangs
				defer cancel()
				args := strings.Fields(strings.NewReplacer("FAR", s.address, "BUSY", l.Addr().String()).Replace(line))
				cmd := exec.CommandContext(ctx, self, append([]string{program}, args...)...)
				cmd.Env = append(os.Environ(), harness.ProgramVariable+"=confine", "FULLPIPE_E2E_WITHHELD="+c.withheld,
					fmt.Sprintf("FULLPIPE_E2E_ERRNO=%d", c.errno), "FULLPIPE_KEY="+s.key.String(),
					"XDG_STATE_HOME="+t.TempDir(), "FULLPIPE_STATE="+t.TempDir())
				out, err := cmd.CombinedOutput()
				said, can := string(out), true
				for what, need := range needs {
					can = can && !(strings.HasPrefix(line, what) && strings.Contains(need, c.withheld))
				}
				var exit *exec.ExitError
				switch {
				case errors.As(err, &exit) && exit.ExitCode() < 0 || ctx.Err() != nil || strings.Contains(said, "goroutine "):
					t.Errorf("%v: %s", err, said)
				case line == "audit" && errors.As(err, &exit) && exit.ExitCode() == 3: // it found something
				case can && err != nil:
					t.Errorf("it could do without: %v: %s", err, said)
				case !can && (err == nil || !strings.Contains(said, "\n  try: ")):
					t.Errorf("%v: it does not say what to try: %s", err, said)
				}
			})
		}
	}
}
