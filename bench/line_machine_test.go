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

// A lab's lateness comes from the link or from the machine: the host of a virtual machine runs another one, or its
// kernel schedules no thread. Threads of a higher real-time class than the link's, one on each processor, wait for no
// other thread of this machine. Any delay of such a thread is therefore the machine's.

const (
	machineSleep = 500 * time.Microsecond
	// maxThreadDelay is the longest delay of such a thread with which a packet's lateness is still attributed to the
	// link.
	maxThreadDelay = time.Millisecond
)

// watchMachine starts the watch. The returned function ends it and returns the longest delay of a thread. It returns
// 0 where real-time threads are not allowed: all lateness is then attributed to the link.
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
	output, err := watch.StdoutPipe()
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
	return func() (longest time.Duration) {
		until.Close()
		var ns int64
		_, err := fmt.Fscan(output, &ns)
		if end := watch.Wait(); err == nil {
			err = end
		}
		if err != nil {
			t.Fatal(err)
		}
		return time.Duration(ns)
	}
}

// machineProgram sleeps repeatedly on each processor until its input ends. It prints by how many nanoseconds the
// longest sleep was too long.
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
