package testenv

import (
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestInside_HasALoopbackOfItsOwn(t *testing.T) {
	Need(t, NetworkNamespace)
	if !Inside(t, unix.CLONE_NEWNET) {
		return
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
	if all, err := net.Interfaces(); err != nil || len(all) != 1 {
		t.Errorf("interfaces %v, %v; want the loopback alone", all, err)
	}
}

// TestInside_FailsWithTheInnerRun runs TestInsideFails in a process of its own.
func TestInside_FailsWithTheInnerRun(t *testing.T) {
	Need(t, NetworkNamespace)
	cmd := exec.Command(os.Args[0], "-test.run=^TestInsideFails$")
	cmd.Env = append(os.Environ(), needsVariable+"=1")
	out, err := cmd.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "the inner run fails") {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestInsideFails(t *testing.T) {
	if os.Getenv(needsVariable) != "" && Inside(t, unix.CLONE_NEWNET) {
		t.Error("the inner run fails")
	}
}
