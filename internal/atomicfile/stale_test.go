package atomicfile

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/testenv/must"
)

// TestCreate_RemovesStaleTemporaryFiles checks that a new output removes only the files of this user's killed
// processes.
func TestCreate_RemovesStaleTemporaryFiles(t *testing.T) {
	ended := exec.Command(os.Args[0], "-test.run=^$")
	must.Do(t, ended.Run())
	dead, dir := ended.Process.Pid, t.TempDir()
	left := func(format string, pid int) string {
		t.Helper()
		name := fmt.Sprintf(format, pid)
		must.Do(t, os.WriteFile(filepath.Join(dir, name), nil, 0o600))
		return name
	}
	left(".fullpipe-%d-0.html", dead)
	left(".fullpipe-%d-99", dead)
	want := []string{"page.html", left(".fullpipe-%d-0.html", os.Getpid()), left(".fullpipe-%d-0", os.Getppid()),
		left(".fullpipe-%d-0.a.b", dead), left(".fullpipe-%d-x", dead), left("fullpipe-%d-0", dead),
		left(".fullpipe-%d000000000-0", dead)}
	folder := fmt.Sprintf(".fullpipe-%d-3", dead)
	must.Do(t, os.Mkdir(filepath.Join(dir, folder), 0o700))
	want = append(want, folder)
	if runtime.GOOS != "windows" {
		link := fmt.Sprintf(".fullpipe-%d-4", dead)
		must.Do(t, os.Symlink("page.html", filepath.Join(dir, link)))
		inUse := left(".fullpipe-%d-5", dead) // by a process of another PID namespace
		file := must.Get(os.Open(filepath.Join(dir, inUse)))(t)
		defer file.Close()
		markUsed(file)
		want = append(want, link, inUse)
		if os.Geteuid() == 0 {
			foreign := left(".fullpipe-%d-6", dead)
			must.Do(t, os.Chown(filepath.Join(dir, foreign), 1, 1))
			want = append(want, foreign)
		}
	}
	must.Do(t, write(t, filepath.Join(dir, "page.html"), "page"))
	entries := must.Get(os.ReadDir(dir))(t)
	var got []string
	for _, e := range entries {
		got = append(got, e.Name())
	}
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("left in the directory: %q, want %q", got, want)
	}
}
