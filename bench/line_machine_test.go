//go:build linux

package bench

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/e2e/harness"
	"golang.org/x/sys/unix"
)

// A lab's lateness is the link's, or the machine's: the host of a virtual machine runs another
// one, or its kernel lets nobody in. Threads of a higher real-time class than the link's, one on
// each processor, wait for nobody in this machine: what holds them up is the machine's.

const (
	machineSleep = 500 * time.Microsecond
	// mostHeld is how long at once a machine may hold such a thread up for a packet's lateness to
	// be the link's.
	mostHeld = time.Millisecond
)

// watchMachine answers what ends the watch and tells how long a thread was held up at most.
// Where real-time threads are not allowed it is 0: whatever is late is the link's.
func watchMachine(t *testing.T) (longest func() time.Duration) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	watch := exec.Command(self)
	watch.Env, watch.Stderr = append(os.Environ(), harness.ProgramVariable+"=machine"), t.Output()
	until, err := watch.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	told, err := watch.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	started := make(chan error)
	go func() {
		runtime.LockOSThread() // and thrown away with its class, which all threads of the program inherit
		attr := unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_FIFO, Priority: 2}
		err := unix.SchedSetAttr(0, &attr, 0)
		if err == nil {
			err = watch.Start()
		}
		started <- err
	}()
	if err := <-started; err != nil {
		t.Logf("the machine is not watched: %v", err)
		return func() time.Duration { return 0 }
	}
	return func() (held time.Duration) {
		until.Close()
		var ns int64
		_, err := fmt.Fscan(told, &ns)
		if end := watch.Wait(); err == nil {
			err = end
		}
		if err != nil {
			t.Fatal(err)
		}
		return time.Duration(ns)
	}
}

// machineProgram sleeps on each processor again and again, until its input ends, and prints by
// how many nanoseconds a sleep was too long at most.
func machineProgram() error {
	var all unix.CPUSet
	if err := unix.SchedGetaffinity(0, &all); err != nil {
		return err
	}
	var longest atomic.Int64
	const mostCPUs = 1024 // of a unix.CPUSet
	for cpu := range mostCPUs {
		if !all.IsSet(cpu) {
			continue
		}
		go func() {
			runtime.LockOSThread()
			var one unix.CPUSet
			one.Set(cpu)
			unix.SchedSetaffinity(0, &one)
			unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0)
			wait := unix.NsecToTimespec(int64(machineSleep))
			for {
				before := time.Now()
				unix.Nanosleep(&wait, nil)
				late := int64(time.Since(before) - machineSleep)
				for most := longest.Load(); late > most && !longest.CompareAndSwap(most, late); most = longest.Load() {
				}
			}
		}()
	}
	io.Copy(io.Discard, os.Stdin)
	_, err := fmt.Println(longest.Load())
	return err
}
