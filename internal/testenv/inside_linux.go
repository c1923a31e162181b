package testenv

import (
	"os"
	"os/exec"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"
)

const insideVariable = "FULLPIPE_TESTENV_INSIDE"

// Inside runs the test again in new namespaces, those of the CLONE_NEW... flags. It returns true in that run, in which
// the loopback of a new network namespace is up. It returns false when that run has ended, and fails the test with it.
// A test needs the features of its namespaces, and cannot have subtests that call Inside.
func Inside(t *testing.T, flags uintptr) bool {
	t.Helper()
	if os.Getenv(insideVariable) == t.Name() {
		if flags&unix.CLONE_NEWNET != 0 {
			if err := loopbackUp(); err != nil {
				t.Fatal(err)
			}
		}
		return true
	}
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe", "-test.run=^"+t.Name()+"$",
		"-test.v="+strconv.FormatBool(testing.Verbose()), "-test.short="+strconv.FormatBool(testing.Short()))
	cmd.Env = append(os.Environ(), insideVariable+"="+t.Name())
	cmd.SysProcAttr = Namespaces(flags)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%v:\n%s", err, out)
	} else if testing.Verbose() {
		t.Logf("%s", out)
	}
	return false
}

func loopbackUp() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	lo, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	lo.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	return unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, lo)
}
