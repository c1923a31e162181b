package serverkey

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/testenv/must"
)

// A key file is created once, for its owner only, and never replaced.
func TestCreate_KeepsExistingFile(t *testing.T) {
	dir := t.TempDir()
	k := KeyFlags{File: filepath.Join(dir, "key")}
	made, err := k.Create(t.Context())
	if err != nil || !made {
		t.Fatal(made, err)
	}
	info, err := os.Stat(k.File)
	if err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	first := must.Get(k.Find(t.Context()))(t)
	if made, err := k.Create(t.Context()); made || err != nil {
		t.Errorf("made again: %v, %v", made, err)
	}
	if again, err := k.Find(t.Context()); err != nil || *again != *first {
		t.Errorf("another key: %v", err)
	}
	if left, _ := os.ReadDir(dir); len(left) != 1 {
		t.Errorf("left behind: %v", left)
	}
	missing := KeyFlags{File: filepath.Join(dir, "no", "such", "directory")}
	if _, err := missing.Create(t.Context()); err == nil {
		t.Error("a key was made nowhere")
	}
}
