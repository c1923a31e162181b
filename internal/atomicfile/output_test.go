package atomicfile

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/testenv"
	"github.com/fullpipe-net/fullpipe/internal/testenv/must"
)

// write writes text to a file as commands do.
func write(t *testing.T, name, text string) error {
	t.Helper()
	f, err := Create(t.Context(), name)
	if err != nil {
		return err
	}
	defer f.Discard()
	if _, err := f.Write([]byte(text)); err != nil {
		return err
	}
	return f.Commit()
}

func content(t *testing.T, name string) string {
	t.Helper()
	text := must.Get(os.ReadFile(name))(t)
	return string(text)
}

// alone checks that a directory contains only the named files.
func alone(t *testing.T, dir string, names ...string) {
	t.Helper()
	entries := must.Get(os.ReadDir(dir))(t)
	var got []string
	for _, e := range entries {
		got = append(got, e.Name())
	}
	if len(got) != len(names) {
		t.Errorf("left in the directory: %q, want %q", got, names)
	}
}

func TestFileIsSeenWholeOrNotAtAll(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "page.html")
	f, err := Create(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	f.Write([]byte("new"))
	if _, err := os.Stat(name); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("seen before it was whole: %v", err)
	}
	must.Do(t, f.Commit())
	f.Discard()
	if got := content(t, name); got != "new" {
		t.Errorf("%q", got)
	}
	must.Do(t, os.Chmod(name, 0o640))
	f, err = Create(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	f.Write([]byte("half"))
	f.Discard()
	if got := content(t, name); got != "new" {
		t.Errorf("a discarded file left %q", got)
	}
	must.Do(t, write(t, name, "newer"))
	if info, _ := os.Stat(name); info.Mode() != 0o640 || content(t, name) != "newer" {
		t.Errorf("%v %q", info.Mode(), content(t, name))
	}
	alone(t, dir, "page.html")
}

func TestLinksAreFollowedToTheirFile(t *testing.T) {
	testenv.Need(t, testenv.Symlinks)
	dir, elsewhere := t.TempDir(), t.TempDir()
	file, link, further := filepath.Join(elsewhere, "file"), filepath.Join(dir, "link"), filepath.Join(dir, "further")
	for name, to := range map[string]string{link: file, further: "link"} {
		must.Do(t, os.Symlink(to, name))
	}
	for _, text := range []string{"through a link that led nowhere", "again"} {
		must.Do(t, write(t, further, text))
		if got := content(t, file); got != text {
			t.Errorf("the file has %q", got)
		}
	}
	for _, name := range []string{link, further} {
		if info, err := os.Lstat(name); err != nil || info.Mode()&fs.ModeSymlink == 0 {
			t.Errorf("%s is no link any more: %v", name, info.Mode())
		}
	}
	if got, err := Target(further); err != nil || got != file {
		t.Errorf("Target: %q, %v", got, err)
	}
	must.Do(t, os.Symlink("loop", filepath.Join(dir, "loop")))
	if err := write(t, filepath.Join(dir, "loop"), "x"); err == nil {
		t.Error("a link to itself was written to")
	}
	alone(t, elsewhere, "file")
}

func TestCreate_UnwritablePaths(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{dir, filepath.Join(dir, "no", "such"), filepath.Join(dir, "x\x00y")} {
		if f, err := Create(context.Background(), name); err == nil {
			f.Discard()
			t.Errorf("%s was opened", name)
		}
	}
	stream := filepath.Join(dir, "capture")
	f := must.Get(Stream(t.Context(), stream))(t)
	f.Discard()
	alone(t, dir)
	var none *File
	if n, err := none.Write([]byte("abc")); n != 3 || err != nil || none.Commit() != nil || none.File() != nil {
		t.Error("no file is not silent")
	}
	none.Discard()
}

func TestRemove_OnlyOwnFiles(t *testing.T) {
	testenv.Need(t, testenv.Symlinks)
	for _, c := range []struct {
		name   string
		before string // content before; "" if missing
		open   func(context.Context, string) (*File, error)
		during func(name string) error
		stays  bool
	}{
		{name: "made whole", open: Create},
		{name: "replaced whole", before: "stale", open: Create},
		{name: "made for a stream", open: Stream},
		{name: "was there for a stream", before: "kept", open: Stream, stays: true},
		{name: "was there for a log", before: "kept", open: Append, stays: true},
		{name: "replaced by somebody", open: Create, during: func(name string) error {
			return os.Rename(name+".other", name)
		}, stays: true},
		{name: "removed by somebody", open: Create, during: os.Remove},
		{name: "a link by now", open: Create, during: func(name string) error {
			return errors.Join(os.Rename(name, name+".moved"), os.Symlink(filepath.Base(name)+".moved", name))
		}, stays: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			name := filepath.Join(t.TempDir(), "file")
			must.Do(t, os.WriteFile(name+".other", []byte("other"), 0o600))
			if c.before != "" {
				must.Do(t, os.WriteFile(name, []byte(c.before), 0o600))
			}
			f, err := c.open(t.Context(), name)
			if err != nil {
				t.Fatal(err)
			}
			_, err = f.Write([]byte("ours"))
			must.Do(t, errors.Join(err, f.Commit()))
			if c.during != nil {
				must.Do(t, c.during(name))
			}
			if err := f.Remove(); err != nil {
				t.Error(err)
			}
			if _, err := os.Lstat(name); (err == nil) != c.stays {
				t.Errorf("after Remove: %v, stays %v", err, c.stays)
			}
		})
	}
}

func TestAppend_KeepsContent(t *testing.T) {
	name := filepath.Join(t.TempDir(), "log")
	for range 2 {
		f, err := Append(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		_, err = f.Write([]byte("line\n"))
		must.Do(t, errors.Join(err, f.Commit()))
	}
	if got := content(t, name); got != "line\nline\n" {
		t.Errorf("%q", got)
	}
}

func TestNew_KeepsExistingFile(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "key")
	f := must.Get(New(name))(t)
	defer f.Discard()
	must.Do(t, os.WriteFile(name, []byte("came meanwhile"), 0o600))
	must.Get(f.Write([]byte("late")))(t)
	if err := f.Commit(); !errors.Is(err, fs.ErrExist) {
		t.Errorf("committed over a file: %v", err)
	}
	if err := WriteNew(name, []byte("later")); !errors.Is(err, fs.ErrExist) {
		t.Errorf("begun over a file: %v", err)
	}
	if got := content(t, name); got != "came meanwhile" {
		t.Errorf("%q", got)
	}
	alone(t, dir, "key")
}

func TestPrivateFilesStayPrivate(t *testing.T) {
	name := filepath.Join(t.TempDir(), "state")
	for _, text := range []string{"one", "two"} {
		must.Do(t, WritePrivate(t.Context(), name, []byte(text)))
	}
	info, err := os.Stat(name)
	if err != nil || runtime.GOOS != "windows" && info.Mode() != 0o600 || content(t, name) != "two" {
		t.Errorf("%v, %v", info, err)
	}
}
