package cli

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/cli/exit"
	"github.com/fullpipe-net/fullpipe/internal/cli/settings"
	"github.com/fullpipe-net/fullpipe/internal/testenv"
)

// TestUnderSudoTheRecordIsTheUsers: a user who is there for this test alone runs measure with
// sudo, twice, recheck and history. The record is in that user's history, and nothing in the home
// is root's.
func TestUnderSudoTheRecordIsTheUsers(t *testing.T) {
	testenv.Need(t, testenv.Root, testenv.Lab, testenv.MountNamespace)
	dir, err := os.MkdirTemp("", "fullpipe-sudo-") // t.TempDir is for its owner alone
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	const uid = 54321
	home, bin, users := filepath.Join(dir, "home"), filepath.Join(dir, "fullpipe"), filepath.Join(dir, "passwd")
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.Chmod(dir, 0o755))
	must(os.Mkdir(home, 0o700))
	must(os.Chown(home, uid, uid))
	if out, err := exec.Command("go", "build", "-o", bin, "../../cmd/fullpipe").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	known, err := os.ReadFile("/etc/passwd")
	must(err)
	line := fmt.Sprintf("throwaway:x:%d:%d::%s:/bin/sh\n", uid, uid, home)
	must(os.WriteFile(users, append(known, line...), 0o644))
	for n, do := range []string{"measure lab:rate=10mbit,rtt=10ms --time 300ms --record",
		"measure lab:rate=10mbit,rtt=10ms --time 300ms --record", "recheck 127.0.0.1:1", "history"} {
		cmd := exec.Command("sh", "-c", `mount --bind "$1" /etc/passwd || exit
			exec "$2" $3`, "sh", users, bin, do)
		cmd.Env = append(withoutStore(os.Environ()), "HOME="+[]string{"/root", home}[n%2], fmt.Sprint("SUDO_UID=", uid),
			fmt.Sprint("SUDO_GID=", uid), "FULLPIPE_KEY="+strings.Repeat("5a", 32),
			settings.Variable+"=")
		cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}
		out, err := cmd.CombinedOutput()
		failed := strings.HasPrefix(do, "recheck") && cmd.ProcessState.ExitCode() == exit.Failed // nobody is there
		if err != nil && !failed || strings.Contains(string(out), "not kept") || do == "history" &&
			strings.Count(string(out), "lab:rate") != 2 {
			t.Fatalf("%s: %v\n%s", do, err, out)
		}
	}
	must(filepath.WalkDir(home, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		if owner := info.Sys().(*syscall.Stat_t).Uid; owner != uid || info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s: owner %d, %v", path, owner, info.Mode())
		}
		return nil
	}))
	list := exec.Command(bin, "history", "--json")
	list.Env = append(withoutStore(os.Environ()), "FULLPIPE_HISTORY="+filepath.Join(home, ".local", "state", "fullpipe"))
	out, err := list.Output()
	if n := strings.Count(string(out), `"id":`); err != nil || n != 2 {
		t.Errorf("%d records, %v\n%s", n, err, out)
	}
}

// withoutStore removes the variables that name another history.
func withoutStore(env []string) (out []string) {
	for _, one := range env {
		if !strings.HasPrefix(one, "FULLPIPE_") && !strings.HasPrefix(one, "XDG_") && !strings.HasPrefix(one, "SUDO_") {
			out = append(out, one)
		}
	}
	return out
}
