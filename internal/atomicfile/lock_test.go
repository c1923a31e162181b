package atomicfile

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/fullpipe-net/fullpipe/internal/testenv"
	"github.com/fullpipe-net/fullpipe/internal/testenv/must"
)

// TestUpdate_ReplacesOneFile creates, changes and keeps a file, also through a link and next to a killed process's
// files.
func TestUpdate_ReplacesOneFile(t *testing.T) {
	dir := t.TempDir()
	name, link := filepath.Join(dir, "keys"), filepath.Join(t.TempDir(), "link")
	refused := errors.New("refused")
	for _, tt := range []struct {
		content string
		err     error
	}{{"one", nil}, {"two", refused}, {"three and longer", nil}, {"4", nil}} {
		for _, left := range []string{".fullpipe-keys.new", ".fullpipe-keys.lock"} {
			if err := os.WriteFile(filepath.Join(dir, left), []byte("left by a killed process"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		was, _ := os.ReadFile(name)
		err := Update(t.Context(), name, func() ([]byte, error) { return []byte(tt.content), tt.err })
		if !errors.Is(err, tt.err) {
			t.Errorf("%s: %v", tt.content, err)
		}
		want := tt.content
		if tt.err != nil {
			want = string(was)
			os.Remove(filepath.Join(dir, ".fullpipe-keys.new")) // the next update removes it
		}
		if got := content(t, name); got != want {
			t.Errorf("%q, want %q", got, want)
		}
		if runtime.GOOS == "windows" {
			os.Remove(filepath.Join(dir, ".fullpipe-keys.lock"))
		}
		alone(t, dir, "keys")
	}
	if info, err := os.Stat(name); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("a new file: %v, %v", info.Mode(), err)
	}
	testenv.Need(t, testenv.Symlinks)
	must.Do(t, os.Symlink(name, link))
	must.Do(t, Update(t.Context(), link, func() ([]byte, error) { return []byte("5"), nil }))
	if got := content(t, name); got != "5" {
		t.Errorf("through a link: %q", got)
	}
}

// TestUpdate_OneAtATime counts concurrently in a file without lost updates.
func TestUpdate_OneAtATime(t *testing.T) {
	name := filepath.Join(t.TempDir(), "count")
	const updates = 50
	var wait sync.WaitGroup
	for range updates {
		wait.Go(func() {
			err := Update(t.Context(), name, func() ([]byte, error) {
				was, _ := os.ReadFile(name)
				n, _ := strconv.Atoi(string(was))
				return []byte(strconv.Itoa(n + 1)), nil
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	if got := content(t, name); got != strconv.Itoa(updates) {
		t.Errorf("%s of %d updates stayed", got, updates)
	}
}

// TestUpdate_WaitsNoLongerThanAsked checks the timeout while another process has the lock.
func TestUpdate_WaitsNoLongerThanAsked(t *testing.T) {
	name := filepath.Join(t.TempDir(), "keys")
	locked, err := LockFile(auxiliaryName(name, "lock"))
	if err != nil || locked == nil {
		t.Fatal(locked, err)
	}
	defer locked.Close()
	never := func() ([]byte, error) { t.Error("changed while another process did"); return nil, nil }
	synctest.Test(t, func(t *testing.T) {
		if err := Update(t.Context(), name, never); err == nil {
			t.Error("the lock was taken twice")
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := Update(ctx, name, never); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
}
