//go:build unix

package cli

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/cli/serverkey"
	"github.com/fullpipe-net/fullpipe/internal/probe"
	"github.com/fullpipe-net/fullpipe/internal/testenv/must"
)

// TestKeyring_KeepsLastValidFile replaces a server's file of keys by things that hold none. Known keys
// stay, a key that was removed before stays removed, and each reason is logged once.
func TestKeyring_KeepsLastValidFile(t *testing.T) {
	a, b := probe.NewKey(), probe.NewKey()
	text := func(name string, key probe.Key) string {
		return "[key." + name + "]\nsecret = \"" + key.String() + "\"\n"
	}
	put := func(content string, mode os.FileMode) func(*testing.T, string) {
		return func(t *testing.T, name string) {
			must.Do(t, os.WriteFile(name, []byte(content), mode))
		}
	}
	for _, tt := range []struct {
		name string
		put  func(t *testing.T, name string)
		says string
		want probe.Key
	}{
		{"missing", func(*testing.T, string) {}, "no such file", a},
		{"a FIFO", func(t *testing.T, name string) {
			must.Do(t, syscall.Mkfifo(name, 0o600))
		}, "not a regular file", a},
		{"a directory", func(t *testing.T, name string) {
			must.Do(t, os.Mkdir(name, 0o700))
		}, "is a directory", a},
		{"a device", func(t *testing.T, name string) {
			must.Do(t, os.Symlink("/dev/zero", name))
		}, "not a regular file", a},
		{"damaged", put("[key.b", 0o600), "line 1", a},
		{"two holders of a key", put(text("b", b)+
			"[key.c]\nsecret = \""+strings.ToUpper(b.String())+"\"\n", 0o600), "distinguished", a},
		{"open to other users", put(text("b", b), 0o644), "mode 0644", a},
		{"open to a group", put(text("b", b), 0o640), "", b},
		{"another key", put(text("b", b), 0o600), "", b},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			name := filepath.Join(t.TempDir(), "keys.toml")
			put(text("gone", probe.NewKey())+text("a", a), 0o600)(t, name)
			var noted []string
			ring, err := serverkey.NewKeyring(t.Context(), name, func(line string) { noted = append(noted, line) })
			if err != nil || len(ring.Now()) != 2 {
				t.Fatal(ring.Now(), err)
			}
			replace := func(by func(*testing.T, string)) {
				t.Helper()
				must.Do(t, os.Rename(name, name+".old"))
				by(t, name)
			}
			replace(put(text("a", a), 0o600))
			ring.Now()
			replace(tt.put)
			for range 3 {
				if now := ring.Now(); len(now) != 1 || now[0].Key != tt.want {
					t.Errorf("%d holders", len(now))
				}
			}
			if tt.says == "" && len(noted) != 0 || tt.says != "" && (len(noted) != 1 || !strings.Contains(noted[0], tt.says)) {
				t.Errorf("noted %q, want %q once", noted, tt.says)
			}
			os.RemoveAll(name)
			put(text("b", b), 0o600)(t, name)
			if now := ring.Now(); len(now) != 1 || now[0].Key != b {
				t.Errorf("after it was mended: %d holders", len(now))
			}
		})
	}
}

// TestKeyFiles_OpenToOtherUsers: a server's file of keys is refused, a key's own file is said.
func TestKeyFiles_OpenToOtherUsers(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	keys, key := filepath.Join(dir, "keys.toml"), filepath.Join(dir, "key")
	if status, errs := ended(t, program(t, "key", "new", "a", "--keys", keys)); status != 0 {
		t.Fatal(errs)
	}
	must.Do(t, os.WriteFile(key, []byte(probe.NewKey().String()), 0o600))
	for _, tt := range []struct {
		file string
		mode os.FileMode
		args []string
		says string
	}{
		{keys, 0o644, []string{"key", "show", "--keys", keys}, "chmod 600 " + keys},
		{keys, 0o602, []string{"key", "new", "b", "--keys", keys}, "mode 0602"},
		{keys, 0o644, []string{"key", "rotate", "a", "--keys", keys}, "mode 0644"},
		{keys, 0o644, []string{"serve", "--listen", "127.0.0.1:0", "--keys", keys}, "mode 0644"},
		{keys, 0o600, []string{"key", "show", "--keys", keys}, ""},
		{key, 0o644, []string{"measure", "127.0.0.1:1", "--key-file", key}, "chmod 600 " + key},
		{key, 0o600, []string{"measure", "127.0.0.1:1", "--key-file", key}, ""},
	} {
		must.Do(t, os.Chmod(tt.file, tt.mode))
		_, errs := ended(t, program(t, tt.args...))
		if said := strings.Contains(errs, "every user of this host"); said != (tt.says != "") ||
			!strings.Contains(errs, tt.says) {
			t.Errorf("%v, mode %04o: %s", tt.args, tt.mode, errs)
		}
	}
}
