package main

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

// A server's key file is made once, for its owner alone, and never replaced.
func TestKeyFileIsMadeOnce(t *testing.T) {
	dir := t.TempDir()
	k := keyFlags{file: filepath.Join(dir, "key")}
	made, err := k.create(t.Context())
	if err != nil || !made {
		t.Fatal(made, err)
	}
	info, err := os.Stat(k.file)
	if err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	first, err := k.find(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if made, err := k.create(t.Context()); made || err != nil {
		t.Errorf("made again: %v, %v", made, err)
	}
	if again, err := k.find(t.Context()); err != nil || *again != *first {
		t.Errorf("another key: %v", err)
	}
	if left, _ := os.ReadDir(dir); len(left) != 1 {
		t.Errorf("left behind: %v", left)
	}
	missing := keyFlags{file: filepath.Join(dir, "no", "such", "directory")}
	if _, err := missing.create(t.Context()); err == nil {
		t.Error("a key was made nowhere")
	}
}
