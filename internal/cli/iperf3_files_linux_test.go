package cli

import (
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/cli/exit"
)

// TestIperf3PidFile runs clients without a server and checks the file of --pidfile.
func TestIperf3PidFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.WriteFile(at("file"), []byte("stale"), 0o600))
	must(os.WriteFile(at("target"), []byte("stale"), 0o600))
	must(os.Mkdir(at("directory"), 0o700))
	must(os.Symlink("target", at("link")))
	must(os.Symlink("nowhere", at("link to nothing")))
	if err := syscall.Mknod(at("device"), syscall.S_IFCHR|0o600, 1<<8|3); err != nil {
		must(os.Symlink("/dev/null", at("device"))) // an ordinary user cannot replace it either way
	}
	must(os.Symlink("device", at("link to device")))
	must(syscall.Mkfifo(at("fifo"), 0o600))
	reader, err := os.OpenFile(at("fifo"), os.O_RDWR, 0)
	must(err)
	defer reader.Close()
	const removed = ^fs.FileMode(0)
	for name, want := range map[string]fs.FileMode{
		"new": removed, "file": removed, "directory": fs.ModeDir, "link": fs.ModeSymlink, "link to nothing": fs.ModeSymlink,
		"device": fs.ModeDevice | fs.ModeCharDevice, "link to device": fs.ModeSymlink, "fifo": fs.ModeNamedPipe,
	} {
		if name == "device" && os.Geteuid() != 0 {
			want = fs.ModeSymlink
		}
		status, errs := ended(t, program(t, "iperf3", "-c", "127.0.0.1", "-p", "1", "--pidfile", at(name)))
		if status != exit.Failed {
			t.Errorf("%s: status %d: %s", name, status, errs)
		}
		info, err := os.Lstat(at(name))
		got := removed
		if err == nil {
			got = info.Mode().Type()
		}
		if got != want {
			t.Errorf("%s became %v (%v), want %v", name, got, err, want)
		}
	}
	if _, err := os.Stat(at("target")); err != nil {
		t.Error(err)
	}
	left, err := filepath.Glob(at(".*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %q, %v", left, err)
	}
}
