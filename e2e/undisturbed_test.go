//go:build linux

package e2e

import (
	"os/exec"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A test that judges what a program measured needs a machine that let the program run. The
// lab says when its link was late, but the link is a real-time process: ordinary ones, as
// those that measure are, can be held up without it, by other work or by the host of a
// virtual machine. A thread that only sleeps for a millisecond again and again shows that.

const (
	canarySleep = time.Millisecond
	// aTick is how late a sleep may end without anything being the matter (250 Hz).
	aTick = 4 * time.Millisecond
	// mostDisturbed is the share of a run that its machine may have stood still.
	mostDisturbed = 0.01
	// mostRuns bounds how often a machine is given the chance to be quiet.
	mostRuns = 5
)

// stoodStill answers for how long ordinary work was held up while measure ran, and how long that took.
func stoodStill(measure func()) (still, took time.Duration) {
	done, total := make(chan struct{}), make(chan time.Duration)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		sleep := unix.NsecToTimespec(canarySleep.Nanoseconds())
		var sum time.Duration
		for {
			select {
			case <-done:
				total <- sum
				return
			default:
			}
			before := time.Now()
			unix.Nanosleep(&sleep, nil)
			if late := time.Since(before) - canarySleep; late >= aTick {
				sum += late
			}
		}
	}()
	start := time.Now()
	measure()
	took = time.Since(start)
	close(done)
	return <-total, took
}

// undisturbed fails with what is wrong with a measurement, unless the machine held it up: then
// another one tells. A fault stands in each run; where a machine lets none of them be, nothing
// can be judged, and the test says so and is skipped.
func undisturbed(t *testing.T, measure func() (wrong error)) {
	t.Helper()
	var wrong error
	for range mostRuns {
		still, took := stoodStill(func() { wrong = measure() })
		if wrong == nil {
			return
		}
		if still.Seconds() <= mostDisturbed*took.Seconds() {
			t.Error(wrong)
			return
		}
		t.Logf("the machine stood still for %v of %v, so this tells nothing: %v", still, took, wrong)
	}
	t.Skipf("the machine held up each of %d runs, and none came out as it should", mostRuns)
}

// TestStoodStill has a child stop this program for a fifth of a second.
func TestStoodStill(t *testing.T) {
	const stop = "kill -STOP $PPID; sleep 0.2; kill -CONT $PPID"
	still, took := stoodStill(func() {
		if err := exec.Command("sh", "-c", stop).Run(); err != nil {
			t.Error(err)
		}
	})
	if still < 150*time.Millisecond || still > took {
		t.Errorf("%v of %v", still, took)
	}
}
