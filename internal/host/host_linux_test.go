package host

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fullpipe-net/fullpipe/internal/testenv"
	"github.com/fullpipe-net/fullpipe/internal/testenv/must"
)

// TestMain runs the tests in network and mount namespaces of their own, because they change real sysctls and routes.
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
	testenv.NeedMain(testenv.NetworkNamespace, testenv.MountNamespace)
	cmd := exec.Command("/proc/self/exe", os.Args[1:]...)
	cmd.Env = append(os.Environ(), "FULLPIPE_HOST_INSIDE=1")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.SysProcAttr = testenv.Namespaces(unix.CLONE_NEWNET | unix.CLONE_NEWNS)
	err := cmd.Run()
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		return exit.ExitCode()
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

// wanted returns the changes that most tests make.
func wanted() []Change {
	return []Change{Set(Sysctl, rmem, "4096 131072 25034752"), Set(Sysctl, wmem, "4096 16384 25034752"),
		Set(Sysctl, sack, "0")}
}

// raw returns the kernel's values, byte for byte.
func raw(t *testing.T) string {
	t.Helper()
	var all strings.Builder
	for _, name := range []string{rmem, wmem, sack} {
		text := must.Get(os.ReadFile("/proc/sys/" + strings.ReplaceAll(name, ".", "/")))(t)
		all.Write(text)
	}
	return all.String()
}

func config(t *testing.T) Config {
	return Config{StateDir: t.TempDir(), Wait: 100 * time.Millisecond}
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
	states := must.Get(Status(cfg))(t)
	var words []string
	for _, s := range states {
		words = append(words, s.Is)
	}
	return strings.Join(words, " ")
}

// put writes a sysctl like another program.
func put(t *testing.T, name, value string) {
	t.Helper()
	must.Do(t, (sysctlStore{"/proc/sys"}).write(name, &value))
}

func TestUndo_RestoresByteEqual(t *testing.T) {
	cfg, before := config(t), raw(t)
	if got := outcomes(must.Get(Preview(cfg, wanted()))(t)); got != "planned planned planned" {
		t.Errorf("preview: %s", got)
	}
	if raw(t) != before {
		t.Fatal("a preview changed something")
	}
	if got := outcomes(must.Get(applied(cfg, wanted()...))(t)); got != "changed changed changed" {
		t.Fatalf("apply: %s", got)
	}
	if raw(t) == before || is(t, cfg) != "ours ours ours" {
		t.Fatalf("status after apply: %s", is(t, cfg))
	}
	if got := outcomes(must.Get(applied(cfg, wanted()...))(t)); got != "unchanged unchanged unchanged" {
		t.Errorf("a second apply: %s", got)
	}
	if got := outcomes(must.Get(undone(cfg))(t)); got != "restored restored restored" {
		t.Errorf("undo: %s", got)
	}
	settled(t, cfg, before)
	if got := must.Get(undone(cfg))(t); len(got) != 0 {
		t.Errorf("a second undo found %+v", got)
	}
}

func applied(cfg Config, changes ...Change) ([]Did, error) {
	return Apply(context.Background(), cfg, changes)
}

func undone(cfg Config, names ...string) ([]Did, error) {
	return Undo(context.Background(), cfg, names...)
}

// settled checks that values are byte-equal and no journal is left.
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

func TestUndo_KeepsOtherProgramsChange(t *testing.T) {
	cfg, before := config(t), raw(t)
	must.Get(applied(cfg, wanted()...))(t)
	put(t, wmem, "4096 16384 1000000")
	if got := is(t, cfg); got != "ours changed ours" {
		t.Errorf("status: %s", got)
	}
	if got := outcomes(must.Get(undone(cfg))(t)); got != "restored conflict restored" {
		t.Errorf("undo: %s", got)
	}
	if text := raw(t); !strings.Contains(text, "1000000") {
		t.Errorf("another program's value is gone:\n%s", text)
	}
	if got := is(t, cfg); got != "changed" {
		t.Errorf("status after: %s", got)
	}
	if err := Forget(context.Background(), cfg, "tcp_wmem"); err != nil { // the short name
		t.Error(err)
	}
	put(t, wmem, strings.Split(before, "\n")[1])
	settled(t, cfg, before)
}

// TestResolveNames_ShortNames accepts the last part of a name if it is unique.
func TestResolveNames_ShortNames(t *testing.T) {
	j := &journal{Records: []Record{{Name: "net.ipv4.tcp_wmem"}, {Name: "net.core.wmem_max"}, {Name: "net.ipv4.wmem_max"},
		{Name: `HKEY_LOCAL_MACHINE\SYSTEM\Tcp1323Opts`}}}
	for short, want := range map[string]string{"tcp_wmem": "net.ipv4.tcp_wmem", "net.core.wmem_max": "net.core.wmem_max",
		"Tcp1323Opts": `HKEY_LOCAL_MACHINE\SYSTEM\Tcp1323Opts`} {
		if full, err := resolveNames(j, []string{short}); err != nil || full[0] != want {
			t.Errorf("%s: %v, %v", short, full, err)
		}
	}
	for short, want := range map[string]string{"wmem": "not changed",
		"wmem_max": "net.core.wmem_max or net.ipv4.wmem_max"} {
		if _, err := resolveNames(j, []string{short}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", short, err)
		}
	}
}

func TestApply_SecondKeepsFirstOldValue(t *testing.T) {
	cfg, before := config(t), raw(t)
	first := must.Get(applied(cfg, Set(Sysctl, rmem, "4096 131072 8000000")))(t)
	second := must.Get(applied(cfg, Set(Sysctl, rmem, "4096  131072\t9000000")))(t)
	if got := outcomes(must.Get(reverted(cfg, second))(t)); got != "restored" {
		t.Errorf("revert: %s", got)
	}
	if text := raw(t); !strings.HasPrefix(text, "4096\t131072\t8000000\n") || is(t, cfg) != "ours" {
		t.Errorf("after taking the second back: %s%s", text, is(t, cfg))
	}
	must.Get(applied(cfg, Set(Sysctl, rmem, "4096 131072 9000000")))(t)
	if got := outcomes(must.Get(reverted(cfg, first))(t)); got != "conflict" {
		t.Errorf("reverting the first under a second: %s", got)
	}
	must.Get(undone(cfg))(t)
	settled(t, cfg, before)
	last := must.Get(applied(cfg, wanted()...))(t)
	if got := outcomes(must.Get(reverted(cfg, last))(t)); got != "restored restored restored" {
		t.Errorf("revert: %s", got)
	}
	settled(t, cfg, before)
}

func reverted(cfg Config, dids []Did) ([]Did, error) {
	return Revert(context.Background(), cfg, dids)
}

func TestUndo_RestoresOtherProgramsValue(t *testing.T) {
	cfg, before := config(t), raw(t)
	must.Get(applied(cfg, Set(Sysctl, rmem, "4096 131072 8000000")))(t)
	put(t, rmem, "4096 131072 7000000")
	must.Get(applied(cfg, Set(Sysctl, rmem, "4096 131072 9000000")))(t)
	must.Get(undone(cfg))(t)
	if text := raw(t); !strings.HasPrefix(text, "4096\t131072\t7000000\n") {
		t.Errorf("undo restored %s", text)
	}
	put(t, rmem, strings.Split(before, "\n")[0])
	settled(t, cfg, before)
}

func TestApply_RollsBackAfterRefusal(t *testing.T) {
	for _, bad := range []Change{
		Set(Sysctl, "net.ipv4.tcp_congestion_control", "no-such-thing"),
		Set(Sysctl, "net.ipv4.tcp_window_scaling", "maybe"),
		{Kind: Sysctl, Name: "net.ipv4.tcp_dsack"}, // a sysctl cannot be removed
	} {
		cfg, before := config(t), raw(t)
		dids, err := applied(cfg, append(wanted(), bad)...)
		if !errors.Is(err, ErrRefused) || outcomes(dids) != "rolled-back rolled-back rolled-back refused" {
			t.Errorf("%s: %v, %s", bad.Name, err, outcomes(dids))
		}
		settled(t, cfg, before)
	}
}

// clipping is a store that sets a smaller value than requested.
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

func TestApply_RollsBackClippedValue(t *testing.T) {
	cfg, before := config(t), raw(t)
	cfg.stores = map[Kind]store{Sysctl: clipping{sysctlStore{"/proc/sys"}, wmem}}
	dids, err := applied(cfg, wanted()...)
	if !errors.Is(err, ErrRefused) || outcomes(dids) != "rolled-back clipped " || dids[1].Found == nil ||
		!strings.Contains(*dids[1].Found, "5000000") {
		t.Errorf("%v, %+v", err, dids)
	}
	settled(t, cfg, before)
}

func TestApply_RejectsUnknownNames(t *testing.T) {
	for _, bad := range []Change{
		Set(Sysctl, "net.ipv4.tcp_no_such", "1"), Set(Sysctl, "kernel.core_pattern", "x"), Set(Sysctl, "net.../etc/passwd",
			"1"),
		Set(Sysctl, "net.ipv4.conf.../../../kernel/core_pattern", "x"), Set(Registry, `HKLM\x`, "1"),
		Set(Sysctl, rmem, "1 2 3"),
		Set(Route, "10.99.0.0/16 initcwnd", "20"), Set(Route, "default ttl", "20"), Set(Route, "x initcwnd", "20"),
	} {
		cfg, before := config(t), raw(t)
		if dids, err := applied(cfg, append(wanted(), bad)...); err == nil {
			t.Errorf("%s was accepted: %+v", bad.Name, dids)
		}
		settled(t, cfg, before)
	}
}

func FuzzJournal(f *testing.F) {
	value := "4096 131072 6291456"
	good, _ := json.Marshal(journal{Schema: journalSchema, Records: []Record{{Kind: Sysctl, Name: rmem, Old: &value,
		New: &value}}})
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
			Config{}.stateOf(r, r.New)
		}
	})
}
