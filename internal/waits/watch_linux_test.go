package waits

import (
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// start starts a program that ends with the test.
func start(t *testing.T, in, out *os.File, name string, args ...string) int {
	t.Helper()
	cmd := exec.Command(name, args...)
	if in != nil {
		cmd.Stdin = in
	}
	if out != nil {
		cmd.Stdout = out
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // Wait says how it ended
		_ = cmd.Wait()
	})
	return cmd.Process.Pid
}

// follow samples a process until the test ends.
func follow(t *testing.T, pid int) *Watch {
	t.Helper()
	w := Open()
	t.Cleanup(w.Close)
	w.Follow(pid)
	return w
}

// TestWatch samples real programs that wait for one thing only.
func TestWatch(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	address := netip.MustParseAddrPort(l.Addr().String())
	pipe := func(t *testing.T) (r, w *os.File) {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { r.Close(); w.Close() })
		return r, w
	}
	for name, c := range map[string]struct {
		start func(t *testing.T) int
		want  Place
	}{
		"sleep": {func(t *testing.T) int { return start(t, nil, nil, "sleep", "60") }, Place{Kind: Sleep}},
		"the writer of a pipe": {func(t *testing.T) int {
			r, w := pipe(t)
			start(t, nil, w, "sleep", "60")
			w.Close()
			return start(t, r, nil, "cat")
		}, Place{Kind: Sleep, Program: "sleep"}},
		"the reader of a pipe": {func(t *testing.T) int {
			r, w := pipe(t)
			start(t, r, nil, "sleep", "60")
			r.Close()
			return start(t, nil, w, "cat", "/dev/zero")
		}, Place{Kind: Sleep, Program: "sleep"}},
		"a lock": {func(t *testing.T) int {
			file := filepath.Join(t.TempDir(), "lock")
			start(t, nil, nil, "flock", file, "sleep", "60")
			return start(t, nil, nil, "sh", "-c", "sleep .5; exec flock "+file+" true")
		}, Place{Kind: Lock}},
		"a child": {func(t *testing.T) int { return start(t, nil, nil, "sh", "-c", "sleep 60; true") },
			Place{Kind: Sleep, Program: "sleep"}},
		"the far end": {func(t *testing.T) int {
			return start(t, nil, nil, "bash", "-c", "read -r line <>/dev/tcp/127.0.0.1/"+l.Addr().String()[len("127.0.0.1:"):])
		}, Place{Kind: Peer, Object: address.String()}},
	} {
		t.Run(name, func(t *testing.T) {
			pid := c.start(t)
			w := follow(t, pid)
			var all []Wait
			for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(200 * time.Millisecond) {
				all = w.Take(pid)
				if len(all) > 0 && all[0].Place == c.want {
					return
				}
			}
			t.Errorf("waits for %+v, want %+v", all, c.want)
		})
	}
}

// TestWatch_Processor: the time on the processor and in its queue is the kernel's own count.
func TestWatch_Processor(t *testing.T) {
	pid := start(t, nil, nil, "sh", "-c", "while :; do :; done")
	w := follow(t, pid)
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(300 * time.Millisecond) {
		all := w.Take(pid)
		runs, sum := time.Duration(0), time.Duration(0)
		for _, wait := range all {
			sum += wait.Time
			if wait.Kind == CPU || wait.Kind == RunQueue || wait.Kind == Quota {
				runs += wait.Time
			}
		}
		if sum > 200*time.Millisecond && runs > sum*8/10 {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%+v", all)
		}
	}
}

// TestWatch_Ended: a process that has ended, or never was, is unknown and no error.
func TestWatch_Ended(t *testing.T) {
	const never = 1 << 30
	w := follow(t, never)
	time.Sleep(3 * every)
	for _, wait := range w.Take(never) {
		if wait.Kind != Unknown {
			t.Errorf("%+v", wait)
		}
	}
}
