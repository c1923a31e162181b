package atomicfile

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/testenv"
	"github.com/fullpipe-net/fullpipe/internal/testenv/must"
)

func TestDevicesStayDevices(t *testing.T) {
	dir := t.TempDir()
	node := filepath.Join(dir, "null")
	if err := syscall.Mknod(node, syscall.S_IFCHR|0o666, 1<<8|3); err != nil {
		node = "/dev/null" // an ordinary user cannot replace it either
	}
	link := filepath.Join(dir, "link")
	must.Do(t, os.Symlink(node, link))
	for _, name := range []string{node, link} {
		if err := write(t, name, "text"); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if info, err := os.Lstat(node); err != nil || info.Mode()&fs.ModeCharDevice == 0 {
		t.Errorf("the device became %v, %v", info, err)
	}
	if info, err := os.Lstat(link); err != nil || info.Mode()&fs.ModeSymlink == 0 {
		t.Errorf("the link became %v, %v", info, err)
	}
	if err := write(t, "/dev/full", "text"); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("/dev/full: %v", err)
	}
}

func TestOpenFilesOfTheProcessAreWrittenDirectly(t *testing.T) {
	name := filepath.Join(t.TempDir(), "out")
	file := must.Get(os.Create(name))(t)
	defer file.Close()
	file.WriteString("before ")
	must.Do(t, write(t, fmt.Sprintf("/proc/self/fd/%d", file.Fd()), "page "))
	file.Seek(0, io.SeekEnd)
	file.WriteString("after")
	if got := content(t, name); got != "before page after" {
		t.Errorf("%q", got)
	}
}

func TestFIFOIsWrittenAndItsWaitsEnd(t *testing.T) {
	name := filepath.Join(t.TempDir(), "fifo")
	must.Do(t, syscall.Mkfifo(name, 0o600))
	read := make(chan string)
	go func() {
		text, _ := os.ReadFile(name)
		read <- string(text)
	}()
	must.Do(t, write(t, name, "through"))
	if got := <-read; got != "through" {
		t.Errorf("%q", got)
	}
	for how, open := range map[string]func(context.Context, string) (*File, error){"Create": Create, "Private": Private,
		"Stream": Stream, "Append": Append} {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(20*time.Millisecond, cancel)
		if _, err := open(ctx, name); !errors.Is(err, context.Canceled) {
			t.Errorf("%s with nobody to read: %v", how, err)
		}
	}
	if _, err := New(name); !errors.Is(err, fs.ErrExist) {
		t.Errorf("a FIFO in place of a new file: %v", err)
	}

	// A reader that reads nothing.
	reader := must.Get(os.OpenFile(name, os.O_RDWR, 0))(t)
	defer reader.Close()
	ctx, cancel := context.WithCancel(t.Context())
	f := must.Get(Create(ctx, name))(t)
	defer f.Discard()
	time.AfterFunc(20*time.Millisecond, cancel)
	if _, err := f.Write(make([]byte, 1<<20)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a reader who does not read: %v", err)
	}
}

// A mount point, as in containers, cannot be renamed over and is overwritten. The mount is in a namespace of the
// test.
func TestMountedFileIsOverwritten(t *testing.T) {
	testenv.Need(t, testenv.MountNamespace)
	if !testenv.Inside(t, syscall.CLONE_NEWNS) {
		return
	}
	dir := t.TempDir()
	from, to := filepath.Join(dir, "from"), filepath.Join(dir, "to")
	for _, name := range []string{from, to} {
		must.Do(t, os.WriteFile(name, []byte("old and longer than the new content"), 0o644))
	}
	must.Do(t, syscall.Mount(from, to, "", syscall.MS_BIND, ""))
	defer syscall.Unmount(to, syscall.MNT_DETACH)
	must.Do(t, write(t, to, "new"))
	if got := content(t, from); got != "new" {
		t.Errorf("%q", got)
	}
	alone(t, dir, "from", "to")
}

func TestDiscardLeavesAFileThatCameInBetween(t *testing.T) {
	name := filepath.Join(t.TempDir(), "capture")
	f := must.Get(Stream(t.Context(), name))(t)
	must.Do(t, errors.Join(os.WriteFile(name+".other", nil, 0o600), os.Rename(name+".other", name)))
	f.Discard()
	if _, err := os.Stat(name); err != nil {
		t.Error(err)
	}
}
