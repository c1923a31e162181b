package host

import (
	"context"
	"errors"
	"fmt"
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

	"github.com/fullpipe-net/fullpipe/internal/testenv"
	"github.com/fullpipe-net/fullpipe/internal/testenv/must"
)

func TestApply_CancelledRollsBack(t *testing.T) {
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

func TestLock_ConcurrentRuns(t *testing.T) {
	cfg, before := config(t), raw(t)
	inside := cfg
	inside.step = func(s step) error {
		if s != stepJournal {
			return nil
		}
		if _, err := undone(cfg); !errors.Is(err, ErrBusy) {
			t.Errorf("undo during apply: %v", err)
		}
		if _, err := applied(cfg, Set(Sysctl, sack, "0")); !errors.Is(err, ErrBusy) {
			t.Errorf("apply during apply: %v", err)
		}
		if got := is(t, cfg); got != "" {
			t.Errorf("status during apply: %s", got)
		}
		return nil
	}
	must.Get(applied(inside, wanted()...))(t)
	must.Get(undone(cfg))(t)
	settled(t, cfg, before)
}

// runJob runs apply or undo in a child, which kills itself before the given step.
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

// child runs a job in another process; killed reports that SIGKILL ended it.
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

func TestApply_KilledAtEveryStep(t *testing.T) {
	for _, job := range []string{"apply", "refused", "undo"} {
		for at := 1; ; at++ {
			cfg, before := config(t), raw(t)
			if job == "undo" {
				must.Get(applied(cfg, wanted()...))(t)
			}
			killed, _ := child(t, cfg, fmt.Sprint(job, " ", at))
			truthful(t, cfg, before, fmt.Sprintf("%s killed before step %d", job, at))
			if _, err := undone(cfg); err != nil {
				t.Errorf("%s, step %d: undo: %v", job, at, err)
			}
			// Only the temporary file of an unfinished journal may remain.
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

// TestApply_KilledAtRandomTimes kills a process that applies and undoes in a loop.
func TestApply_KilledAtRandomTimes(t *testing.T) {
	cfg, before := config(t), raw(t)
	for range 40 {
		cmd := exec.Command("/proc/self/exe")
		cmd.Env = append(os.Environ(), "FULLPIPE_HOST_JOB=forever", "FULLPIPE_HOST_STATE="+cfg.StateDir)
		must.Do(t, cmd.Start())
		started := func() bool { _, err := os.Stat(filepath.Join(cfg.StateDir, "lock")); return err == nil }
		for !started() {
			time.Sleep(time.Millisecond)
		}
		time.Sleep(time.Duration(rand.IntN(8000)) * time.Microsecond)
		cmd.Process.Kill()
		cmd.Wait()
		truthful(t, cfg, before, "killed somewhere")
		must.Get(undone(cfg))(t)
		settled(t, cfg, before)
		if t.Failed() {
			return
		}
		os.Remove(filepath.Join(cfg.StateDir, "lock"))
	}
}

// truthful compares status with the values.
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
		ok := is == "no record" || is == "not-made" || is == "changed" // restored by an interrupted undo
		if olds[i] != news[i] {
			wants, ok = "ours or interrupted", is == "ours" || is == "interrupted"
		}
		if !ok {
			t.Errorf("%s: %s was %q, is %q: status says %q, want %s", when, name, olds[i], news[i], is, wants)
		}
	}
}

func TestApply_LostPrivileges(t *testing.T) {
	testenv.Need(t, testenv.Root)
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

func TestApply_FullDisk(t *testing.T) {
	cfg, before := config(t), raw(t)
	must.Do(t, unix.Mount("tmpfs", cfg.StateDir, "tmpfs", 0, "size=16k,mode=755"))
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
	if dids, err := applied(full, wanted()...); !errors.Is(err, unix.ENOSPC) ||
		outcomes(dids) != "rolled-back rolled-back rolled-back" {
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
	must.Get(applied(cfg, wanted()...))(t)
	fill()
	if _, err := undone(cfg); err != nil && !errors.Is(err, unix.ENOSPC) {
		t.Errorf("undo on a full disk: %v", err)
	}
	if raw(t) != before {
		t.Error("a full disk kept undo from restoring")
	}
	os.Remove(filler)
	must.Get(undone(cfg))(t)
	settled(t, cfg, before)
}

func TestApply_ReadOnlyProc(t *testing.T) {
	cfg, before := config(t), raw(t)
	must.Do(t, unix.Mount("/proc/sys", "/proc/sys", "", unix.MS_BIND, ""))
	must.Do(t, unix.Mount("", "/proc/sys", "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY, ""))
	dids, err := applied(cfg, wanted()...)
	if !errors.Is(err, unix.EROFS) || outcomes(dids) != "refused  " {
		t.Errorf("read-only /proc/sys: %v, %q", err, outcomes(dids))
	}
	must.Do(t, unix.Unmount("/proc/sys", unix.MNT_DETACH))
	settled(t, cfg, before)
}

func TestUndo_ReadOnlyProc(t *testing.T) {
	cfg, before := config(t), raw(t)
	must.Get(applied(cfg, wanted()...))(t)
	must.Do(t, unix.Mount("/proc/sys", "/proc/sys", "", unix.MS_BIND, ""))
	must.Do(t, unix.Mount("", "/proc/sys", "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY, ""))
	if _, err := undone(cfg); !errors.Is(err, unix.EROFS) {
		t.Errorf("undo with read-only /proc/sys: %v", err)
	}
	if got := is(t, cfg); got != "ours ours ours" {
		t.Errorf("status: %s", got)
	}
	must.Do(t, unix.Unmount("/proc/sys", unix.MNT_DETACH))
	must.Get(undone(cfg))(t)
	settled(t, cfg, before)
}

func TestStatus_AfterReboot(t *testing.T) {
	cfg, before := config(t), raw(t)
	must.Get(applied(cfg, wanted()...))(t)
	j := must.Get(cfg.complete().readJournal())(t)
	for i := range j.Records {
		j.Records[i].Boot = "an earlier one"
	}
	must.Do(t, j.save())
	if got := is(t, cfg); got != "ours ours ours" {
		t.Errorf("still in force (a file of sysctl.d): %s", got)
	}
	for i, name := range []string{rmem, wmem, sack} {
		put(t, name, strings.Split(before, "\n")[i])
	}
	if got := is(t, cfg); got != "gone gone gone" {
		t.Errorf("after a restart: %s", got)
	}
	if got := outcomes(must.Get(undone(cfg))(t)); got != "gone gone gone" {
		t.Errorf("undo after a restart: %s", got)
	}
	settled(t, cfg, before)
}

func TestJournal_InvalidIsKept(t *testing.T) {
	cfg, before := config(t), raw(t)
	must.Get(applied(cfg, wanted()...))(t)
	path := cfg.complete().journalPath()
	good := must.Get(os.ReadFile(path))(t)
	must.Do(t, os.WriteFile(path, good[:len(good)/2], 0o600))
	var broken *JournalError
	for name, err := range map[string]error{"apply": second(applied(cfg, Set(Sysctl, sack, "1"))),
		"undo": second(undone(cfg)), "status": second(Status(cfg))} {
		if !errors.As(err, &broken) || broken.Try() == "" {
			t.Errorf("%s with a broken journal: %v", name, err)
		}
	}
	if now, _ := os.ReadFile(path); len(now) != len(good)/2 {
		t.Error("the broken journal was written over")
	}
	must.Do(t, os.WriteFile(path, good, 0o600))
	must.Get(undone(cfg))(t)
	settled(t, cfg, before)
}

func second[T any](_ T, err error) error { return err }
