//go:build unix

package watch

import (
	"bytes"
	"context"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/cli/hook"
	"github.com/fullpipe-net/fullpipe/internal/secret"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/watch"
)

// TestHook_RunsShellOnlyOnRequest checks that a command is only split into words unless a shell is requested.
func TestHook_RunsShellOnlyOnRequest(t *testing.T) {
	for _, c := range []struct {
		command string
		shell   bool
		want    string
	}{
		{"printenv FULLPIPE_X", false, "a b;c\n"},
		{"echo $FULLPIPE_X ; id", false, "$FULLPIPE_X ; id\n"},
		{`printf %s "$FULLPIPE_X"`, true, "a b;c"},
	} {
		cmd := New()
		cmd.SetContext(t.Context())
		var out bytes.Buffer
		h := newHook(cmd, c.command, c.shell, &out)
		h.send([]string{"FULLPIPE_X=a b;c"})
		h.close()
		if out.String() != c.want {
			t.Errorf("%q: %q, want %q", c.command, out.String(), c.want)
		}
	}
}

// TestHook_EndsSlowPrograms ends a slow program with all its processes, names a failing one, and starts none after an
// interrupt.
func TestHook_EndsSlowPrograms(t *testing.T) {
	t.Parallel()
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	cmd := New()
	cmd.SetContext(ctx)
	var notes bytes.Buffer
	cmd.SetErr(&notes)
	file := filepath.Join(t.TempDir(), "pid")
	var pid int
	for limit := 3 * time.Second; pid == 0 && limit < time.Minute; limit *= 2 { // a shell may take long to begin
		h := newHook(cmd, fmt.Sprintf("sleep 600 & echo $! > %s; wait", file), true, nil)
		h.limit = limit
		h.send(nil)
		h.close()
		if text, err := os.ReadFile(file); err == nil {
			fmt.Sscan(string(text), &pid)
		}
	}
	if pid == 0 {
		t.Fatal("the program never began")
	}
	awaitEnd(t, pid)
	if !strings.Contains(notes.String(), "took more than ") {
		t.Errorf("%q", notes.String())
	}
	notes.Reset()
	h := newHook(cmd, "false", false, nil)
	h.send(nil)
	h.close()
	if !strings.Contains(notes.String(), "false: exit status 1") {
		t.Errorf("%q", notes.String())
	}
	interrupt()
	other := filepath.Join(t.TempDir(), "never")
	h = newHook(cmd, "touch "+other, false, nil)
	h.send(nil)
	h.close()
	if _, err := os.Stat(other); err == nil {
		t.Error("it ran after the interrupt")
	}
}

// TestHookOutputIsBounded: 64 KiB are kept, and the program can write on.
func TestHookOutputIsBounded(t *testing.T) {
	t.Parallel()
	said, err := hook.Run(t.Context(), []string{"sh", "-c", "head -c 20000000 /dev/zero; head -c 20000000 /dev/zero >&2"},
		nil, nil)
	if err != nil || len(said) != 64<<10 {
		t.Errorf("%d bytes kept, %v", len(said), err)
	}
}

// TestHookLeavesNoProcesses ends the program's own processes with it.
func TestHookLeavesNoProcesses(t *testing.T) {
	t.Parallel()
	said, err := hook.Run(t.Context(), []string{"sh", "-c", "sleep 600 & echo $!"}, nil, nil)
	var pid int
	if _, scanned := fmt.Sscan(string(said), &pid); err != nil || scanned != nil {
		t.Fatalf("%q, %v", said, err)
	}
	awaitEnd(t, pid)
}

// TestHookGetsNoSecrets keeps secrets out of the program's environment.
func TestHookGetsNoSecrets(t *testing.T) {
	for _, name := range secret.Variables {
		t.Setenv(name, "secret")
	}
	said, err := hook.Run(t.Context(), []string{"env"}, []string{"FULLPIPE_X=value"}, nil)
	if err != nil || strings.Contains(string(said), "secret") || !strings.Contains(string(said), "FULLPIPE_X=value") {
		t.Errorf("%v: %s", err, said)
	}
}

// awaitEnd waits for the end of a process that was killed; it comes when the machine lets it.
func awaitEnd(t *testing.T, pid int) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if syscall.Kill(pid, 0) != nil || len(stat) == 0 || strings.Contains(string(stat), ") Z ") {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d still runs: %s", pid, stat)
		}
	}
}

// pathViews are views of five minutes of two connections each to one network.
func pathViews(n int, rtt func(i int) time.Duration) []*watch.View {
	var all []*watch.View
	const window = 5 * time.Minute
	for i := range n {
		v := &watch.View{At: time.Duration(i+1) * window, Length: window}
		for j := range 2 {
			c := &watch.Connection{Born: true, FirstSeen: v.At - time.Minute, Handshake: &transfer.Handshake{MSS: 1448,
				PathMTU: 1500}}
			c.Remote = netip.MustParseAddrPort(fmt.Sprintf("192.0.2.%d:443", j+1))
			c.Sample.MinRTT = rtt(i)
			v.Connections = append(v.Connections, watch.Observed{Connection: c})
		}
		all = append(all, v)
	}
	return all
}

// TestAChangedPathRunsTheProgram keeps the baseline of a watch: the next one reads it, finds a longer path and runs the
// program with the change.
func TestAChangedPathRunsTheProgram(t *testing.T) {
	cmd := New()
	cmd.SetContext(t.Context())
	file := filepath.Join(t.TempDir(), "state", "paths.json")
	play := func(views []*watch.View, h *hookQueue) (shifts int) {
		from := func(_ context.Context, _ watch.Config, each func(*watch.View) error) error {
			for _, v := range views {
				if err := each(v); err != nil {
					return err
				}
			}
			return nil
		}
		err := newPathFollower(cmd, file, h).follow(from)(t.Context(), watch.Config{}, func(v *watch.View) error {
			shifts += len(v.Shifts)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return shifts
	}
	asEver := func(i int) time.Duration { return 20*time.Millisecond + time.Duration(i%3)*100*time.Microsecond }
	if n := play(pathViews(60, asEver), nil); n != 0 {
		t.Errorf("%d shifts of a path that is as ever", n)
	}
	info, err := os.Stat(file)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("%v, %v", info, err)
	}
	if kept, _ := os.ReadFile(file); !strings.Contains(string(kept), "192.0.2.0/24") || strings.Contains(string(kept),
		"192.0.2.1") {
		t.Errorf("kept is %s", kept)
	}
	var out bytes.Buffer
	h := newHook(cmd, "printenv FULLPIPE_METRIC FULLPIPE_NETWORK FULLPIPE_BEFORE FULLPIPE_AFTER FULLPIPE_CHANGE", false,
		&out)
	n := play(pathViews(5, func(int) time.Duration { return 24 * time.Millisecond }), h)
	h.close()
	if n != 1 || !strings.HasPrefix(out.String(), "rtt\n192.0.2.0/24\n0.0201\n0.024\nthe path to 192.0.2.0/24 has "+
		"changed: minimum RTT 24 ms instead of 20.1 ms since ") {
		t.Errorf("%d shifts, reported %q", n, out.String())
	}
	if err := os.WriteFile(file, []byte(`{"schema":"other"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	var notes bytes.Buffer
	cmd.SetErr(&notes)
	if p := newPathFollower(cmd, file, nil); len(p.host.Networks) != 0 ||
		!strings.Contains(notes.String(), "learnt again") {
		t.Errorf("%+v, %q", p.host, notes.String())
	}
}
