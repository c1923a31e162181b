package mcp

import (
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/testenv/must"
)

// TestFiles_Open checks which names lead to a file: those of regular files below an allowed directory, by names and
// links that stay there.
func TestFiles_Open(t *testing.T) {
	root := t.TempDir()
	dir := filepath.Join(root, "allowed")
	other := filepath.Join(root, "other")
	for _, d := range []string{dir, filepath.Join(dir, "sub"), other} {
		must.Do(t, os.Mkdir(d, 0o700))
	}
	for name, text := range map[string]string{"allowed/a": "a", "allowed/sub/b": "b", "outside": "secret", "other/c": "c",
		"allowed/large": strings.Repeat("x", 11), "allowed-not": "secret"} {
		must.Do(t, os.WriteFile(filepath.Join(root, name), []byte(text), 0o600))
	}
	cases := map[string]string{"a": "a", "sub/b": "b", filepath.Join(dir, "a"): "a", "sub/../a": "a", "c": "c",
		filepath.Join(other, "c"): "c", "": "", ".": "", "sub": "", "nothing": "", "../outside": "", "sub/../../outside": "",
		filepath.Join(root, "outside"): "", dir + "-not": "", "large": "", "a/": "", "/etc/passwd": "", "a\x00": ""}
	if runtime.GOOS != "windows" {
		for link, to := range map[string]string{"inside": "sub/b", "leaves": "../outside", "absolute": filepath.Join(root,
			"outside"), "subdir": "..", "loop": "loop"} {
			must.Do(t, os.Symlink(to, filepath.Join(dir, link)))
		}
		cases["inside"] = "b"
		cases["leaves"] = ""
		cases["absolute"] = ""
		cases["subdir/outside"] = ""
		cases["loop"] = ""
		cases["/dev/zero"] = ""
	}
	allowed := must.Get(newFiles([]string{dir, other}))(t)
	for name, want := range cases {
		file, err := allowed.open(t.Context(), name, 10)
		if err != nil {
			if want != "" {
				t.Errorf("%q: %v", name, err)
			}
			continue
		}
		got, err := io.ReadAll(file)
		file.Close()
		if err != nil || string(got) != want {
			t.Errorf("%q has %q, want %q", name, got, want)
		}
	}
	none := must.Get(newFiles(nil))(t)
	if file, err := none.open(t.Context(), filepath.Join(dir, "a"), 10); err == nil || !strings.Contains(err.Error(),
		"--files") {
		t.Errorf("%v, %v", file, err)
	}
	for _, wrong := range []string{filepath.Join(root, "outside"), filepath.Join(root, "nothing")} {
		if f, err := newFiles([]string{wrong}); err == nil {
			t.Errorf("%s: %v", wrong, f)
		}
	}
}
