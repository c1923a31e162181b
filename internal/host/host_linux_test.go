package host

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fullpipe-net/fullpipe/internal/audit"
	"github.com/fullpipe-net/fullpipe/internal/plan"
)

// The tests change real sysctls and routes, in network and mount namespaces of their own
// that end with them.
func TestMain(m *testing.M) {
	switch job := os.Getenv("FULLPIPE_HOST_JOB"); job {
	case "":
	case "listen":
		os.Exit(listen())
	default:
		os.Exit(runJob(job))
	}
	if os.Getenv("FULLPIPE_HOST_INSIDE") == "" {
		os.Exit(reexec())
	}
	os.Exit(m.Run())
}

// reexec runs this test binary again inside namespaces.
func reexec() int {
	cmd := exec.Command("/proc/self/exe", os.Args[1:]...)
	cmd.Env = append(os.Environ(), "FULLPIPE_HOST_INSIDE=1")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNET | unix.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL}
	if os.Geteuid() != 0 {
		cmd.SysProcAttr.Cloneflags |= unix.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}}
	}
	err := cmd.Run()
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		return exit.ExitCode()
	case err != nil && os.Getenv("CI") == "":
		fmt.Fprintf(os.Stderr, "skipped: no namespaces here: %v\n", err)
		return 0
	case err != nil:
		fmt.Fprintf(os.Stderr, "no namespaces here: %v\n", err)
		return 1
	}
	return 0
}

const (
	rmem = "net.ipv4.tcp_rmem"
	wmem = "net.ipv4.tcp_wmem"
	sack = "net.ipv4.tcp_sack"
)

// wanted are the changes that most tests make.
func wanted() []Change {
	return []Change{Set(Sysctl, rmem, "4096 131072 25034752"), Set(Sysctl, wmem, "4096 16384 25034752"), Set(Sysctl, sack, "0")}
}

// raw is what the kernel says, byte for byte.
func raw(t *testing.T) string {
	t.Helper()
	var all strings.Builder
	for _, name := range []string{rmem, wmem, sack} {
		text, err := os.ReadFile("/proc/sys/" + strings.ReplaceAll(name, ".", "/"))
		if err != nil {
			t.Fatal(err)
		}
		all.Write(text)
	}
	return all.String()
}

func config(t *testing.T) Config {
	return Config{StateDir: t.TempDir(), Wait: 100 * time.Millisecond}
}

func must(t *testing.T) func([]Did, error) []Did {
	return func(dids []Did, err error) []Did {
		t.Helper()
		if err != nil {
			t.Fatalf("%v: %+v", err, dids)
		}
		return dids
	}
}

func outcomes(dids []Did) string {
	var words []string
	for _, d := range dids {
		words = append(words, string(d.Outcome))
	}
	return strings.Join(words, " ")
}

func is(t *testing.T, cfg Config) string {
	t.Helper()
	states, err := Status(cfg)
	if err != nil {
		t.Fatal(err)
	}
	var words []string
	for _, s := range states {
		words = append(words, s.Is)
	}
	return strings.Join(words, " ")
}

// put writes a sysctl as somebody else would.
func put(t *testing.T, name, value string) {
	t.Helper()
	if err := (sysctlStore{"/proc/sys"}).write(name, &value); err != nil {
		t.Fatal(err)
	}
}

func TestApplyThenUndoIsByteEqual(t *testing.T) {
	cfg, before := config(t), raw(t)
	if got := outcomes(must(t)(Preview(cfg, wanted()))); got != "planned planned planned" {
		t.Errorf("preview: %s", got)
	}
	if raw(t) != before {
		t.Fatal("a preview changed something")
	}
	if got := outcomes(must(t)(applied(cfg, wanted()...))); got != "changed changed changed" {
		t.Fatalf("apply: %s", got)
	}
	if raw(t) == before || is(t, cfg) != "ours ours ours" {
		t.Fatalf("status after apply: %s", is(t, cfg))
	}
	if got := outcomes(must(t)(applied(cfg, wanted()...))); got != "unchanged unchanged unchanged" {
		t.Errorf("a second apply: %s", got)
	}
	if got := outcomes(must(t)(undone(cfg))); got != "restored restored restored" {
		t.Errorf("undo: %s", got)
	}
	settled(t, cfg, before)
	if got := must(t)(undone(cfg)); len(got) != 0 {
		t.Errorf("a second undo found %+v", got)
	}
}

func applied(cfg Config, changes ...Change) ([]Did, error) {
	return Apply(context.Background(), cfg, changes)
}

func undone(cfg Config, names ...string) ([]Did, error) {
	return Undo(context.Background(), cfg, names...)
}

// settled demands that nothing of ours is left: values byte-equal, no journal.
func settled(t *testing.T, cfg Config, before string) {
	t.Helper()
	if now := raw(t); now != before {
		t.Errorf("values are\n%snot\n%s", now, before)
	}
	left, err := filepath.Glob(filepath.Join(cfg.StateDir, "*"))
	if err != nil || len(left) > 1 || len(left) == 1 && filepath.Base(left[0]) != "lock" {
		t.Errorf("left behind: %q, %v", left, err)
	}
	if hidden, _ := filepath.Glob(filepath.Join(cfg.StateDir, ".*")); len(hidden) > 0 {
		t.Errorf("left behind: %q", hidden)
	}
}

func TestUndoLeavesSomebodyElsesChange(t *testing.T) {
	cfg, before := config(t), raw(t)
	must(t)(applied(cfg, wanted()...))
	put(t, wmem, "4096 16384 1000000")
	if got := is(t, cfg); got != "ours changed ours" {
		t.Errorf("status: %s", got)
	}
	if got := outcomes(must(t)(undone(cfg))); got != "restored conflict restored" {
		t.Errorf("undo: %s", got)
	}
	if text := raw(t); !strings.Contains(text, "1000000") {
		t.Errorf("somebody else's value is gone:\n%s", text)
	}
	if got := is(t, cfg); got != "changed" {
		t.Errorf("status after: %s", got)
	}
	if err := Forget(context.Background(), cfg, wmem); err != nil {
		t.Error(err)
	}
	put(t, wmem, strings.Split(before, "\n")[1])
	settled(t, cfg, before)
}

func TestASecondApplyKeepsTheFirstOldValue(t *testing.T) {
	cfg, before := config(t), raw(t)
	first := must(t)(applied(cfg, Set(Sysctl, rmem, "4096 131072 8000000")))
	second := must(t)(applied(cfg, Set(Sysctl, rmem, "4096  131072\t9000000")))
	if got := outcomes(must(t)(reverted(cfg, second))); got != "restored" {
		t.Errorf("revert: %s", got)
	}
	if text := raw(t); !strings.HasPrefix(text, "4096\t131072\t8000000\n") || is(t, cfg) != "ours" {
		t.Errorf("after taking the second back: %s%s", text, is(t, cfg))
	}
	must(t)(applied(cfg, Set(Sysctl, rmem, "4096 131072 9000000")))
	if got := outcomes(must(t)(reverted(cfg, first))); got != "conflict" {
		t.Errorf("reverting the first under a second: %s", got)
	}
	must(t)(undone(cfg))
	settled(t, cfg, before)
	last := must(t)(applied(cfg, wanted()...))
	if got := outcomes(must(t)(reverted(cfg, last))); got != "restored restored restored" {
		t.Errorf("revert: %s", got)
	}
	settled(t, cfg, before)
}

func reverted(cfg Config, dids []Did) ([]Did, error) {
	return Revert(context.Background(), cfg, dids)
}

func TestApplyOverSomebodyElsesChangeOwesThemTheirs(t *testing.T) {
	cfg, before := config(t), raw(t)
	must(t)(applied(cfg, Set(Sysctl, rmem, "4096 131072 8000000")))
	put(t, rmem, "4096 131072 7000000")
	must(t)(applied(cfg, Set(Sysctl, rmem, "4096 131072 9000000")))
	must(t)(undone(cfg))
	if text := raw(t); !strings.HasPrefix(text, "4096\t131072\t7000000\n") {
		t.Errorf("undo restored %s", text)
	}
	put(t, rmem, strings.Split(before, "\n")[0])
	settled(t, cfg, before)
}

func TestARefusedValueRollsTheRestBack(t *testing.T) {
	for _, bad := range []Change{
		Set(Sysctl, "net.ipv4.tcp_congestion_control", "no-such-thing"),
		Set(Sysctl, "net.ipv4.tcp_window_scaling", "maybe"),
		{Kind: Sysctl, Name: "net.ipv4.tcp_dsack"}, // no value can be removed
	} {
		cfg, before := config(t), raw(t)
		dids, err := applied(cfg, append(wanted(), bad)...)
		if !errors.Is(err, ErrRefused) || outcomes(dids) != "rolled-back rolled-back rolled-back refused" {
			t.Errorf("%s: %v, %s", bad.Name, err, outcomes(dids))
		}
		settled(t, cfg, before)
	}
}

// clipping stands for a system that takes less than it was asked for.
type clipping struct {
	sysctlStore
	name string
}

func (c clipping) write(name string, value *string) error {
	if name == c.name && strings.HasSuffix(*value, "25034752") {
		less := "4096 16384 5000000"
		value = &less
	}
	return c.sysctlStore.write(name, value)
}

func TestAClippedValueIsReportedAndRolledBack(t *testing.T) {
	cfg, before := config(t), raw(t)
	cfg.stores = map[Kind]store{Sysctl: clipping{sysctlStore{"/proc/sys"}, wmem}}
	dids, err := applied(cfg, wanted()...)
	if !errors.Is(err, ErrRefused) || outcomes(dids) != "rolled-back clipped " || !strings.Contains(dids[1].Reason, "5000000") {
		t.Errorf("%v, %+v", err, dids)
	}
	settled(t, cfg, before)
}

func TestNothingIsChangedThatCannotBeRead(t *testing.T) {
	for _, bad := range []Change{
		Set(Sysctl, "net.ipv4.tcp_no_such", "1"), Set(Sysctl, "kernel.core_pattern", "x"), Set(Sysctl, "net.../etc/passwd", "1"),
		Set(Sysctl, "net.ipv4.conf.../../../kernel/core_pattern", "x"), Set(Registry, `HKLM\x`, "1"), Set(Sysctl, rmem, "1 2 3"),
		Set(Route, "10.99.0.0/16 initcwnd", "20"), Set(Route, "default ttl", "20"), Set(Route, "x initcwnd", "20"),
	} {
		cfg, before := config(t), raw(t)
		if dids, err := applied(cfg, append(wanted(), bad)...); err == nil {
			t.Errorf("%s was taken: %+v", bad.Name, dids)
		}
		settled(t, cfg, before)
	}
}

func TestCancelledApplyLeavesNothing(t *testing.T) {
	cfg, before := config(t), raw(t)
	ctx, cancel := context.WithCancel(context.Background())
	writes := 0
	cfg.step = func(s step) error {
		if s == stepWrite {
			if writes++; writes == 2 {
				cancel()
			}
		}
		return nil
	}
	if _, err := Apply(ctx, cfg, wanted()); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	settled(t, cfg, before)
}

func TestConcurrentRunsAreLocked(t *testing.T) {
	cfg, before := config(t), raw(t)
	inside := cfg
	inside.step = func(s step) error {
		if s != stepJournal {
			return nil
		}
		if _, err := undone(cfg); !errors.Is(err, ErrBusy) {
			t.Errorf("undo beside apply: %v", err)
		}
		if _, err := applied(cfg, Set(Sysctl, sack, "0")); !errors.Is(err, ErrBusy) {
			t.Errorf("apply beside apply: %v", err)
		}
		if got := is(t, cfg); got != "" {
			t.Errorf("status beside apply: %s", got)
		}
		return nil
	}
	must(t)(applied(inside, wanted()...))
	must(t)(undone(cfg))
	settled(t, cfg, before)
}

// runJob is what a child does that is to be killed: apply or undo, killing itself before
// the given step.
func runJob(job string) int {
	kind, at, _ := strings.Cut(job, " ")
	fatal, _ := strconv.Atoi(at)
	steps := 0
	cfg := Config{StateDir: os.Getenv("FULLPIPE_HOST_STATE"), step: func(step) error {
		if steps++; steps == fatal {
			syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
		return nil
	}}
	changes := wanted()
	if kind == "refused" {
		changes = append(changes, Set(Sysctl, "net.ipv4.tcp_congestion_control", "no-such-thing"))
	}
	if kind == "unprivileged" {
		cfg.step = func(s step) error {
			if steps++; steps == fatal {
				return errors.Join(syscall.Setgroups(nil), syscall.Setgid(65534), syscall.Setuid(65534))
			}
			return nil
		}
	}
	var err error
	for kind == "forever" && err == nil {
		if _, err = applied(cfg, changes...); err == nil {
			_, err = undone(cfg)
		}
	}
	if kind == "undo" {
		_, err = undone(cfg)
	} else {
		_, err = applied(cfg, changes...)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// child runs a job in a process of its own; killed says that it died of SIGKILL.
func child(t *testing.T, cfg Config, job string) (killed bool, message string) {
	t.Helper()
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), "FULLPIPE_HOST_JOB="+job, "FULLPIPE_HOST_STATE="+cfg.StateDir)
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return exit != nil && exit.Sys().(syscall.WaitStatus).Signal() == syscall.SIGKILL, string(out)
}

func TestKilledAtEveryStep(t *testing.T) {
	for _, job := range []string{"apply", "refused", "undo"} {
		for at := 1; ; at++ {
			cfg, before := config(t), raw(t)
			if job == "undo" {
				must(t)(applied(cfg, wanted()...))
			}
			killed, _ := child(t, cfg, fmt.Sprint(job, " ", at))
			truthful(t, cfg, before, fmt.Sprintf("%s killed before step %d", job, at))
			if _, err := undone(cfg); err != nil {
				t.Errorf("%s, step %d: undo: %v", job, at, err)
			}
			// What is left is at most the temporary file of a journal that was being written.
			settled(t, cfg, before)
			if !killed {
				if at < 5 {
					t.Errorf("%s has only %d steps", job, at-1)
				}
				break
			}
		}
	}
}

// TestKilledAnywhere kills a process that applies and undoes without end, at moments that
// nobody chose.
func TestKilledAnywhere(t *testing.T) {
	cfg, before := config(t), raw(t)
	for range 40 {
		cmd := exec.Command("/proc/self/exe")
		cmd.Env = append(os.Environ(), "FULLPIPE_HOST_JOB=forever", "FULLPIPE_HOST_STATE="+cfg.StateDir)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		started := func() bool { _, err := os.Stat(filepath.Join(cfg.StateDir, "lock")); return err == nil }
		for !started() {
			time.Sleep(time.Millisecond)
		}
		time.Sleep(time.Duration(rand.IntN(8000)) * time.Microsecond)
		cmd.Process.Kill()
		cmd.Wait()
		truthful(t, cfg, before, "killed somewhere")
		must(t)(undone(cfg))
		settled(t, cfg, before)
		if t.Failed() {
			return
		}
		os.Remove(filepath.Join(cfg.StateDir, "lock"))
	}
}

// truthful holds status against the values themselves.
func truthful(t *testing.T, cfg Config, before, when string) {
	t.Helper()
	states, err := Status(cfg)
	if err != nil {
		t.Fatalf("%s: status: %v", when, err)
	}
	olds, news := strings.Split(before, "\n"), strings.Split(raw(t), "\n")
	for i, name := range []string{rmem, wmem, sack} {
		is := "no record"
		for _, s := range states {
			if s.Name == name {
				is = s.Is
			}
		}
		wants := "no record, not-made or ours"
		ok := is == "no record" || is == "not-made" || is == "changed" // restored by an undo that was cut short
		if olds[i] != news[i] {
			wants, ok = "ours or interrupted", is == "ours" || is == "interrupted"
		}
		if !ok {
			t.Errorf("%s: %s was %q, is %q: status says %q, want %s", when, name, olds[i], news[i], is, wants)
		}
	}
}

func TestLostPrivileges(t *testing.T) {
	if os.Geteuid() != 0 || !firstUserNamespace() {
		t.Skip("only root can become somebody else")
	}
	for at := 1; at <= 8; at++ {
		cfg, before := config(t), raw(t)
		_, message := child(t, cfg, fmt.Sprint("unprivileged ", at))
		if message == "" {
			t.Errorf("step %d: an apply without privileges succeeded", at)
		}
		truthful(t, cfg, before, fmt.Sprintf("privileges lost before step %d", at))
		if _, err := undone(cfg); err != nil {
			t.Errorf("step %d: undo: %v", at, err)
		}
		settled(t, cfg, before)
	}
}

func TestFullDisk(t *testing.T) {
	cfg, before := config(t), raw(t)
	if err := unix.Mount("tmpfs", cfg.StateDir, "tmpfs", 0, "size=16k"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Unmount(cfg.StateDir, unix.MNT_DETACH) })
	filler := filepath.Join(cfg.StateDir, "filler")
	fill := func() {
		file, err := os.OpenFile(filler, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
		if err != nil {
			return
		}
		defer file.Close()
		for err == nil {
			_, err = file.Write(make([]byte, 512))
		}
	}
	fill()
	dids, err := applied(cfg, wanted()...)
	if !errors.Is(err, unix.ENOSPC) || !strings.Contains(err.Error(), "nothing was changed") {
		t.Errorf("a full disk: %v, %s", err, outcomes(dids))
	}
	if raw(t) != before {
		t.Error("changed without a journal")
	}
	os.Remove(filler)

	// The disk fills up while the values are being written.
	full := cfg
	full.step = func(s step) error {
		if s == stepDone {
			fill()
		}
		return nil
	}
	if dids, err := applied(full, wanted()...); !errors.Is(err, unix.ENOSPC) || outcomes(dids) != "rolled-back rolled-back rolled-back" {
		t.Errorf("a disk that filled up: %v, %s", err, outcomes(dids))
	}
	if raw(t) != before {
		t.Error("not rolled back")
	}
	if got := is(t, cfg); strings.Trim(strings.ReplaceAll(got, "not-made", ""), " ") != "" {
		t.Errorf("status: %s", got)
	}
	os.Remove(filler)

	// The disk is full when it comes to undo: the values still return.
	must(t)(applied(cfg, wanted()...))
	fill()
	if _, err := undone(cfg); err != nil && !errors.Is(err, unix.ENOSPC) {
		t.Errorf("undo on a full disk: %v", err)
	}
	if raw(t) != before {
		t.Error("a full disk kept undo from restoring")
	}
	os.Remove(filler)
	must(t)(undone(cfg))
	settled(t, cfg, before)
}

func TestReadOnlyProc(t *testing.T) {
	cfg, before := config(t), raw(t)
	if err := unix.Mount("/proc/sys", "/proc/sys", "", unix.MS_BIND, ""); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("", "/proc/sys", "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil {
		t.Fatal(err)
	}
	dids, err := applied(cfg, wanted()...)
	if !errors.Is(err, unix.EROFS) || outcomes(dids) != "refused  " {
		t.Errorf("read-only /proc/sys: %v, %q", err, outcomes(dids))
	}
	if err := unix.Unmount("/proc/sys", unix.MNT_DETACH); err != nil {
		t.Fatal(err)
	}
	settled(t, cfg, before)
}

func TestReadOnlyProcAtUndo(t *testing.T) {
	cfg, before := config(t), raw(t)
	must(t)(applied(cfg, wanted()...))
	if err := unix.Mount("/proc/sys", "/proc/sys", "", unix.MS_BIND, ""); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("", "/proc/sys", "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil {
		t.Fatal(err)
	}
	if _, err := undone(cfg); !errors.Is(err, unix.EROFS) {
		t.Errorf("undo with read-only /proc/sys: %v", err)
	}
	if got := is(t, cfg); got != "ours ours ours" {
		t.Errorf("status: %s", got)
	}
	if err := unix.Unmount("/proc/sys", unix.MNT_DETACH); err != nil {
		t.Fatal(err)
	}
	must(t)(undone(cfg))
	settled(t, cfg, before)
}

func TestARestartTakesRunTimeValuesBack(t *testing.T) {
	cfg, before := config(t), raw(t)
	must(t)(applied(cfg, wanted()...))
	j, err := cfg.complete().readJournal()
	if err != nil {
		t.Fatal(err)
	}
	for i := range j.Records {
		j.Records[i].Boot = "an earlier one"
	}
	if err := j.save(); err != nil {
		t.Fatal(err)
	}
	if got := is(t, cfg); got != "ours ours ours" {
		t.Errorf("still in force (a file of sysctl.d): %s", got)
	}
	for i, name := range []string{rmem, wmem, sack} {
		put(t, name, strings.Split(before, "\n")[i])
	}
	if got := is(t, cfg); got != "gone gone gone" {
		t.Errorf("after a restart: %s", got)
	}
	if got := outcomes(must(t)(undone(cfg))); got != "gone gone gone" {
		t.Errorf("undo after a restart: %s", got)
	}
	settled(t, cfg, before)
}

func TestFilesAreMadeAndRemoved(t *testing.T) {
	cfg := config(t)
	made, existing := filepath.Join(t.TempDir(), "90-fullpipe.conf"), filepath.Join(t.TempDir(), "own.conf")
	if err := os.WriteFile(existing, []byte("theirs\n"), 0o640); err != nil {
		t.Fatal(err)
	}
	must(t)(applied(cfg, Set(File, made, "a = 1\n"), Set(File, existing, "ours\n")))
	if text, _ := os.ReadFile(made); string(text) != "a = 1\n" {
		t.Errorf("the file holds %q", text)
	}
	if got := outcomes(must(t)(undone(cfg))); got != "restored restored" {
		t.Errorf("undo: %s", got)
	}
	if _, err := os.Stat(made); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the file is still there: %v", err)
	}
	info, _ := os.Stat(existing)
	if text, _ := os.ReadFile(existing); string(text) != "theirs\n" || info.Mode().Perm() != 0o640 {
		t.Errorf("the other's file holds %q, mode %v", text, info.Mode())
	}
}

func TestRouteAttributes(t *testing.T) {
	cfg := config(t)
	ip := func(args ...string) string {
		out, err := exec.Command("ip", args...).CombinedOutput()
		if err != nil {
			t.Fatalf("ip %q: %v: %s", args, err, out)
		}
		return string(out)
	}
	ip("link", "set", "lo", "up")
	ip("route", "replace", "10.9.0.0/16", "dev", "lo", "mtu", "lock", "9000", "rto_min", "150ms", "src", "127.0.0.1")
	ip("route", "replace", "10.9.0.0/16", "dev", "lo", "metric", "50", "initcwnd", "4")
	ip("-6", "route", "replace", "2001:db8::/32", "dev", "lo")
	t.Cleanup(func() {
		exec.Command("ip", "route", "flush", "10.9.0.0/16").Run()
		exec.Command("ip", "-6", "route", "del", "2001:db8::/32").Run()
	})
	before := ip("route", "show") + ip("-6", "route", "show")
	dids := must(t)(applied(cfg, Set(Route, "10.9.0.0/16 initcwnd", "20"), Set(Route, "10.9.0.0/16 window", "151840"), Set(Route, "10.9.0.0/16 cwnd", "30"),
		Set(Route, "10.9.0.0/16 congctl", "reno"), Set(Route, "2001:db8::/32 initrwnd", "40")))
	now := ip("route", "show") + ip("-6", "route", "show")
	for _, want := range []string{"mtu lock 9000", "rto_min lock 150ms", "src 127.0.0.1", "initcwnd 20", "window 151840", "cwnd 30", "congctl reno", "initrwnd 40", "metric 50 initcwnd 4"} {
		want = strings.Replace(want, "rto_min lock", "rto_min", 1)
		if !strings.Contains(now, want) && !strings.Contains(now, strings.Replace(want, "cwnd 30", "cwnd lock 30", 1)) &&
			!strings.Contains(now, strings.Replace(want, "rto_min", "rto_min lock", 1)) {
			t.Errorf("no %q in\n%s", want, now)
		}
	}
	if outcomes(dids) != "changed changed changed changed changed" {
		t.Errorf("apply: %s", outcomes(dids))
	}
	must(t)(undone(cfg))
	if after := ip("route", "show") + ip("-6", "route", "show"); after != before {
		t.Errorf("routes are\n%snot\n%s", after, before)
	}
}

func TestSnapshotOfThisNamespace(t *testing.T) {
	ip := exec.Command("ip", "link", "add", "dev", "up0", "mtu", "1400", "txqueuelen", "50", "type", "veth", "peer", "name", "up1")
	if out, err := ip.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, args := range []string{"link set lo up", "link set up0 up", "link set up1 up", "route add 10.8.0.0/16 dev up0 window 65536 congctl reno"} {
		if out, err := exec.Command("ip", strings.Fields(args)...).CombinedOutput(); err != nil {
			t.Fatalf("ip %s: %v: %s", args, err, out)
		}
	}
	t.Cleanup(func() { exec.Command("ip", "link", "del", "up0").Run() })
	listener := exec.Command("/proc/self/exe")
	listener.Env = append(os.Environ(), "FULLPIPE_HOST_JOB=listen")
	ready, err := listener.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := listener.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { listener.Process.Kill(); listener.Wait() }()
	if _, err := ready.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}

	s, err := Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	if !s.Namespace || s.System != "linux" || s.Version == "" || s.MemoryBytes < 1<<20 || s.Values[rmem] == "" {
		t.Errorf("snapshot %+v", s)
	}
	var face *audit.Interface
	for i := range s.Interfaces {
		if s.Interfaces[i].Name == "up0" {
			face = &s.Interfaces[i]
		}
	}
	if face == nil || face.MTUBytes != 1400 || face.TxQueueLen != 50 || face.Qdisc == "" || !face.Offloads["tso"] {
		t.Errorf("interfaces %+v", s.Interfaces)
	}
	if len(s.Routes) != 1 || s.Routes[0].Prefix != "10.8.0.0/16" || s.Routes[0].Attributes["window"] != "65536" || s.Routes[0].Attributes["congctl"] != "reno" {
		t.Errorf("routes %+v", s.Routes)
	}
	if len(s.Sockets) != 1 || !s.Sockets[0].RecvFixed || s.Sockets[0].SendFixed || s.Sockets[0].RecvBytes != 80000 || s.Sockets[0].Remote != "" {
		t.Errorf("a listener that fixed its receive buffer: %+v", s.Sockets)
	}
}

// listen holds a listener with a receive buffer of 40,000 bytes until it is killed.
func listen() int {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
	if err == nil {
		err = errors.Join(unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, 40000), unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}), unix.Listen(fd, 1))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Println("ready")
	for {
		time.Sleep(time.Hour)
	}
}

func TestScopesAreApart(t *testing.T) {
	if scope() == "host" {
		t.Fatal("a namespace calls itself the host")
	}
	if boot := bootID(); boot == "" || !strings.Contains(scope(), strings.ReplaceAll(boot, "-", "")[:8]) {
		t.Errorf("scope %s of boot %s", scope(), boot)
	}
}

func TestABrokenJournalIsNeverWrittenOver(t *testing.T) {
	cfg, before := config(t), raw(t)
	must(t)(applied(cfg, wanted()...))
	path := cfg.complete().journalPath()
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, good[:len(good)/2], 0o600); err != nil {
		t.Fatal(err)
	}
	var broken *JournalError
	for name, err := range map[string]error{"apply": second(applied(cfg, Set(Sysctl, sack, "1"))), "undo": second(undone(cfg)), "status": second(Status(cfg))} {
		if !errors.As(err, &broken) || broken.Try() == "" {
			t.Errorf("%s with a broken journal: %v", name, err)
		}
	}
	if now, _ := os.ReadFile(path); len(now) != len(good)/2 {
		t.Error("the broken journal was written over")
	}
	if err := os.WriteFile(path, good, 0o600); err != nil {
		t.Fatal(err)
	}
	must(t)(undone(cfg))
	settled(t, cfg, before)
}

func second[T any](_ T, err error) error { return err }

func FuzzJournal(f *testing.F) {
	value := "4096 131072 6291456"
	good, _ := json.Marshal(journal{Schema: journalSchema, Records: []Record{{Kind: Sysctl, Name: rmem, Old: &value, New: &value}}})
	f.Add(good)
	f.Add([]byte(`{"schema":"fullpipe/journal/v1","records":[{"kind":"file","name":"/x","old":null}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		j, err := parseJournal(text)
		if err != nil {
			return
		}
		for _, r := range j.Records {
			if r.Name == "" {
				t.Error("a record without a name")
			}
			(sysctlStore{"/nowhere"}).read(r.Name)
			Config{}.is(r, r.New)
		}
	})
}

func FuzzAttributes(f *testing.F) {
	f.Add(encodeAttributes([]attribute{{1, []byte{1, 2, 3, 4}}, {16, []byte("reno\x00")}}))
	f.Fuzz(func(t *testing.T, b []byte) {
		r := &route{attributes: parseAttributes(b)}
		r.setMetric(unix.RTAX_WINDOW, []byte{1, 2, 3, 4})
		r.prefix()
		encodeAttributes(r.attributes)
	})
}

func TestChangesOnlyRaise(t *testing.T) {
	put(t, rmem, "8192 262144 99999999")
	t.Cleanup(func() { put(t, rmem, "4096 131072 6291456") })
	settings := []plan.Setting{
		{Name: rmem, Where: "/proc/sys/net/ipv4/tcp_rmem", Type: "min default max", Value: "4096 131072 25034752"},
		{Name: wmem, Where: "/proc/sys/net/ipv4/tcp_wmem", Type: "min default max", Value: "1 2 25034752"},
		{Name: sack, Where: "/proc/sys/net/ipv4/tcp_sack", Type: "boolean", Value: "1"},
	}
	changes, err := Changes(settings, "")
	if err != nil || *changes[0].Value != "8192 262144 99999999" || !strings.HasSuffix(*changes[1].Value, " 25034752") || strings.HasPrefix(*changes[1].Value, "1 ") {
		t.Errorf("%v, %v", err, changes)
	}
	for _, s := range []plan.Setting{{Name: "AutoTuningLevelLocal", Where: "Set-NetTCPSetting", Value: "Normal"}, {Name: "window", Where: "ip route change", Value: "1"}} {
		var unsettable *UnsettableError
		if _, err := Changes([]plan.Setting{s}, ""); !errors.As(err, &unsettable) {
			t.Errorf("%s: %v", s.Name, err)
		}
	}
	if _, err := Persist(changes); err == nil {
		t.Error("a namespace's settings were to persist")
	}
}
