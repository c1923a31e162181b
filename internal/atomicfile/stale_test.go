package atomicfile

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
)

// TestCreate_RemovesStaleTemporaryFiles checks that a new output removes only the files of this user's killed
// processes.
func TestCreate_RemovesStaleTemporaryFiles(t *testing.T) {
	ended := exec.Command(os.Args[0], "-test.run=^$")
	if err := ended.Run(); err != nil {
		t.Fatal(err)
	}
	dead, dir := ended.Process.Pid, t.TempDir()
	left := func(format string, pid int) string {
		t.Helper()
		name := fmt.Sprintf(format, pid)
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	left(".fullpipe-%d-0.html", dead)
	left(".fullpipe-%d-99", dead)
	want := []string{"page.html", left(".fullpipe-%d-0.html", os.Getpid()), left(".fullpipe-%d-0", os.Getppid()),
		left(".fullpipe-%d-0.a.b", dead), left(".fullpipe-%d-x", dead), left("fullpipe-%d-0", dead),
		left(".fullpipe-%d000000000-0", dead)}
	folder := fmt.Sprintf(".fullpipe-%d-3", dead)
	if err := os.Mkdir(filepath.Join(dir, folder), 0o700); err != nil {
		t.Fatal(err)
	}
	want = append(want, folder)
	if runtime.GOOS != "windows" {
		link := fmt.Sprintf(".fullpipe-%d-4", dead)
		if err := os.Symlink("page.html", filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
		inUse := left(".fullpipe-%d-5", dead) // by a process of another PID namespace
		file, err := os.Open(filepath.Join(dir, inUse))
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		markUsed(file)
		want = append(want, link, inUse)
		if os.Geteuid() == 0 {
			foreign := left(".fullpipe-%d-6", dead)
			if err := os.Chown(filepath.Join(dir, foreign), 1, 1); err != nil {
				t.Fatal(err)
			}
			want = append(want, foreign)
		}
	}
	if err := write(t, filepath.Join(dir, "page.html"), "page"); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range entries {
		got = append(got, e.Name())
	}
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("left in the directory: %q, want %q", got, want)
	}
}
