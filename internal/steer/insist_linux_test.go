package steer

import (
	"bufio"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestWhoIgnoresSIGTERMIsKilledByAnother: a program that ignores it is asked once, by however many that come at
// once, and killed by one that comes later. Other signals only go on.
func TestWhoIgnoresSIGTERMIsKilledByAnother(t *testing.T) {
	for _, last := range []syscall.Signal{unix.SIGUSR1, unix.SIGKILL} {
		cmd := exec.CommandContext(t.Context(), "sh", "-c", `trap "" INT TERM; echo ready; exec sleep 1000`)
		out, err := cmd.StdoutPipe()
		if err == nil {
			err = cmd.Start()
		}
		if err != nil {
			t.Fatal(err)
		}
		if line, err := bufio.NewReader(out).ReadString('\n'); line != "ready\n" {
			t.Fatalf("%q, %v", line, err)
		}
		signals, over := make(chan os.Signal), make(chan struct{})
		go relay(t.Context(), cmd.Process, signals, over)
		for range 3 {
			signals <- unix.SIGTERM
		}
		time.Sleep(insistence)
		signals <- unix.SIGINT
		if last == unix.SIGKILL {
			signals <- unix.SIGTERM
		} else {
			signals <- last
		}
		err = cmd.Wait()
		close(over)
		if ws := cmd.ProcessState.Sys().(syscall.WaitStatus); !ws.Signaled() || ws.Signal() != last {
			t.Errorf("it was to be ended by %v: %v", last, err)
		}
	}
}
