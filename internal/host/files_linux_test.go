package host

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/fullpipe-net/fullpipe/internal/testenv"
	"github.com/fullpipe-net/fullpipe/internal/testenv/must"
)

// sysctlDir mounts an empty directory over the host's sysctl.d, in the mount namespace of these tests.
func sysctlDir(t *testing.T) string {
	t.Helper()
	testenv.Need(t, testenv.SysctlDirectory)
	dir := filepath.Dir(PersistFile)
	must.Do(t, unix.Mount("tmpfs", dir, "tmpfs", 0, "mode=755"))
	t.Cleanup(func() { unix.Unmount(dir, unix.MNT_DETACH) })
	return dir
}

func write(t *testing.T, path, text string, mode os.FileMode) {
	t.Helper()
	must.Do(t, errors.Join(os.WriteFile(path, []byte(text), mode), os.Chmod(path, mode)))
}

func checkFile(t *testing.T, path, want string) {
	t.Helper()
	if text, err := os.ReadFile(path); err != nil || string(text) != want {
		t.Errorf("%s: %v, content %q, want %q", path, err, text, want)
	}
}

func TestFileStore_CreatesAndRemoves(t *testing.T) {
	sysctlDir(t)
	cfg := config(t)
	must.Get(applied(cfg, Set(File, PersistFile, "a = 1\n")))(t)
	checkFile(t, PersistFile, "a = 1\n")
	must.Get(undone(cfg))(t)
	if _, err := os.Stat(PersistFile); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the file is still there: %v", err)
	}
	write(t, PersistFile, "theirs\n", 0o640)
	must.Get(applied(cfg, Set(File, PersistFile, "ours\n")))(t)
	must.Get(undone(cfg))(t)
	checkFile(t, PersistFile, "theirs\n")
	if info, _ := os.Stat(PersistFile); info.Mode().Perm() != 0o640 {
		t.Errorf("mode %v", info.Mode())
	}
}

func TestPersist_UndoRestoresFile(t *testing.T) {
	sysctlDir(t)
	cfg, before := config(t), raw(t)
	changes := must.Get(persist(wanted()))(t)
	must.Get(applied(cfg, changes...))(t)
	text, err := os.ReadFile(PersistFile)
	if err != nil || strings.Count(string(text), " = ") != 3 {
		t.Errorf("%v: %q", err, text)
	}
	must.Get(undone(cfg, rmem, sack))(t)
	if text, _ := os.ReadFile(PersistFile); strings.Count(string(text), " = ") != 1 || !strings.Contains(string(text),
		wmem) {
		t.Errorf("after undo of two: %q", text)
	}
	if got := is(t, cfg); got != "ours ours" {
		t.Errorf("status after undo of two: %s", got)
	}
	must.Get(undone(cfg))(t)
	settled(t, cfg, before)
	if _, err := os.Stat(PersistFile); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the file is still there: %v", err)
	}
}

// TestPersist_KeepsLinesOfOtherRuns has another run write the file before the confirmation.
func TestPersist_KeepsLinesOfOtherRuns(t *testing.T) {
	sysctlDir(t)
	cfg, before := config(t), raw(t)
	one := must.Get(persist([]Change{Set(Sysctl, sack, "0")}))(t)
	shown := must.Get(Preview(cfg, one))(t)
	two := must.Get(persist([]Change{Set(Sysctl, wmem, "4096 16384 8388608")}))(t)
	must.Get(applied(cfg, two...))(t)
	asked := cfg
	asked.Check = func(would []Did) error { return Agreed(shown, would) }
	must.Get(applied(asked, one...))(t)
	text, _ := os.ReadFile(PersistFile)
	if !strings.Contains(string(text), sack+" = 0\n") || !strings.Contains(string(text), wmem+" = 4096 16384 8388608\n") {
		t.Errorf("the file has %q", text)
	}
	must.Get(undone(cfg))(t)
	settled(t, cfg, before)
}

// TestFileStore_FollowsLinks checks that links of every form are followed and stay links.
func TestFileStore_FollowsLinks(t *testing.T) {
	for _, c := range []struct {
		name, target string
		old          string // in the file; "" is none
	}{
		{"absolute", "ABS/real.conf", "net.core.somaxconn = 4096\n"},
		{"relative", "../sysctl.d/sub/real.conf", "x = 1\n"},
		{"dangling", "sub/none.conf", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := sysctlDir(t)
			sub := filepath.Join(dir, "sub")
			must.Do(t, os.Mkdir(sub, 0o755))
			target := strings.Replace(c.target, "ABS", sub, 1)
			must.Do(t, os.Symlink(target, PersistFile))
			real := filepath.Join(sub, filepath.Base(target))
			if c.old != "" {
				write(t, real, c.old, 0o600)
			}
			cfg, before := config(t), raw(t)
			changes := must.Get(persist(wanted()))(t)
			must.Get(applied(cfg, changes...))(t)
			if now, err := os.Readlink(PersistFile); err != nil || now != target {
				t.Errorf("the link is %q, %v", now, err)
			}
			if text, err := os.ReadFile(real); err != nil || !strings.HasPrefix(string(text), c.old) ||
				strings.Count(string(text), rmem) != 1 {
				t.Errorf("the file has %q, %v", text, err)
			}
			must.Get(undone(cfg))(t)
			settled(t, cfg, before)
			if now, err := os.Readlink(PersistFile); err != nil || now != target {
				t.Errorf("after undo the link is %q, %v", now, err)
			}
			if c.old != "" {
				checkFile(t, real, c.old)
			} else if _, err := os.Lstat(real); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("after undo the file is there: %v", err)
			}
		})
	}
}

// TestFileStore_KeepsMaskedFile checks that a link to a device, a device, a directory and a loop of links stay.
func TestFileStore_KeepsMaskedFile(t *testing.T) {
	for name, prepare := range map[string]func() error{
		"link to a device": func() error { return os.Symlink("/dev/null", PersistFile) },
		"pipe":             func() error { return unix.Mkfifo(PersistFile, 0o600) },
		"directory":        func() error { return os.Mkdir(PersistFile, 0o755) },
		"ring":             func() error { return os.Symlink(PersistFile, PersistFile) },
	} {
		t.Run(name, func(t *testing.T) {
			sysctlDir(t)
			must.Do(t, prepare())
			was, _ := os.Lstat(PersistFile)
			cfg, before := config(t), raw(t)
			changes := must.Get(persist(wanted()))(t)
			if dids, err := applied(cfg, changes...); err == nil {
				t.Errorf("taken: %+v", dids)
			}
			settled(t, cfg, before)
			if now, err := os.Lstat(PersistFile); err != nil || now.Mode() != was.Mode() {
				t.Errorf("it is now %v, %v", now, err)
			}
		})
	}
	if null, err := os.Stat("/dev/null"); err != nil || null.Mode()&os.ModeCharDevice == 0 {
		t.Errorf("/dev/null is %v, %v", null, err)
	}
}

// TestFileStore_OnlyOurFile checks that neither a change nor a journal reaches another file.
func TestFileStore_OnlyOurFile(t *testing.T) {
	sysctlDir(t)
	cfg := config(t)
	other := filepath.Join(t.TempDir(), "passwd")
	write(t, other, "theirs\n", 0o644)
	if dids, err := applied(cfg, Set(File, other, "ours\n")); err == nil {
		t.Errorf("a change of %s was accepted: %+v", other, dids)
	}
	for _, name := range []string{other, PersistFile + "/../../passwd", "/etc/sysctl.d/90-fullpipe.conf.d"} {
		journal := `{"schema":"fullpipe/journal/v1","records":[{"kind":"file","name":"` + name +
			`","old":"root::0:0::/:/bin/sh\\n","was":"theirs\\n","new":"theirs\\n","made":true}]}`
		write(t, cfg.complete().journalPath(), journal, 0o600)
		var broken *JournalError
		if _, err := undone(cfg); !errors.As(err, &broken) {
			t.Errorf("undo of a journal that names %s: %v", name, err)
		}
	}
	checkFile(t, other, "theirs\n")
}

// TestTrusted_RejectsWritableState lets others write the state directory or the journal.
func TestTrusted_RejectsWritableState(t *testing.T) {
	for _, c := range []struct {
		name  string
		spoil func(dir, journal string) error
		root  bool
	}{
		{"directory of everybody", func(dir, _ string) error { return os.Chmod(dir, 0o777) }, false},
		{"directory of a group", func(dir, _ string) error { return os.Chmod(dir, 0o775) }, false},
		{"sticky directory", func(dir, _ string) error { return os.Chmod(dir, 0o777|os.ModeSticky) }, false},
		{"directory of another", func(dir, _ string) error { return os.Chown(dir, 65534, 65534) }, true},
		{"journal of everybody", func(_, journal string) error { return os.Chmod(journal, 0o666) }, false},
		{"journal of another", func(_, journal string) error { return os.Chown(journal, 65534, 65534) }, true},
		{"linked journal of another", func(dir, journal string) error {
			theirs := filepath.Join(dir, "theirs")
			return errors.Join(os.Rename(journal, theirs), os.Chown(theirs, 65534, 65534), os.Symlink(theirs, journal))
		}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.root {
				testenv.Need(t, testenv.Root)
			}
			cfg, before := config(t), raw(t)
			must.Get(applied(cfg, wanted()...))(t)
			ours := raw(t)
			dir, journal := cfg.StateDir, cfg.complete().journalPath()
			must.Do(t, c.spoil(dir, journal))
			var distrust *TrustError
			for what, err := range map[string]error{"undo": second(undone(cfg)), "status": second(Status(cfg)),
				"apply": second(applied(cfg, Set(Sysctl, sack, "1")))} {
				if !errors.As(err, &distrust) || distrust.Try() == "" {
					t.Errorf("%s: %v", what, err)
				}
			}
			if raw(t) != ours {
				t.Error("something was changed")
			}
			// The remedy of the message works.
			if target, err := os.Readlink(journal); err == nil {
				os.Remove(journal)
				os.Rename(target, journal)
			}
			if err := errors.Join(os.Chown(dir, os.Geteuid(), -1), os.Chmod(dir, 0o755), os.Chown(journal, os.Geteuid(), -1),
				os.Chmod(journal, 0o600)); err != nil {
				t.Fatal(err)
			}
			must.Get(undone(cfg))(t)
			settled(t, cfg, before)
		})
	}
}
