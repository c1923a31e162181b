//go:build linux

package harness

import (
	"runtime"

	"golang.org/x/sys/unix"
)

// InNamespace runs a function on a thread in a network namespace of /run/netns. The thread returns to its own one: its
// end would end the programs that it started.
func InNamespace(name string, do func() error) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	own, err := unix.Open("/proc/thread-self/ns/net", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(own)
	other, err := unix.Open("/run/netns/"+name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(other)
	if err := unix.Setns(other, unix.CLONE_NEWNET); err != nil {
		return err
	}
	err = do()
	if back := unix.Setns(own, unix.CLONE_NEWNET); back != nil {
		panic(back) // the thread would serve other goroutines in the wrong namespace
	}
	return err
}
