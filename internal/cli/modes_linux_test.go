package cli

import (
	"bytes"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/cli/console"
	"github.com/fullpipe-net/fullpipe/internal/cli/hub"
	"github.com/fullpipe-net/fullpipe/internal/secret"
)

// TestCommands_FileModes runs commands that keep something, without a umask: all files and directories that they make
// are their owner's alone, but for the ones that the user named. TestFilesAreTheirOwners reads the code of all.
func TestCommands_FileModes(t *testing.T) {
	before := syscall.Umask(0)
	defer syscall.Umask(before)
	home, named := t.TempDir(), t.TempDir()
	t.Setenv("HOME", home)
	for _, name := range []string{"FULLPIPE_STATE", "FULLPIPE_HISTORY", "XDG_STATE_HOME", "XDG_CACHE_HOME"} {
		t.Setenv(name, "")
	}
	_, join, endHub := startFlooded(t, floodedServer{hub: true, args: []string{"serve", "--json", "--listen",
		"127.0.0.1:0"}}, `"join":"([^"]+)"`)
	defer endHub()
	t.Setenv(secret.Join, join[0])
	_, _, endAgent := startFlooded(t, floodedServer{args: []string{"agent", "--listen", "127.0.0.1:0"}},
		`connected  (\S+)`)
	defer endAgent()
	keys := filepath.Join(named, "keys.toml")
	_, at, endServe := startFlooded(t, floodedServer{args: []string{"serve", "--listen", "127.0.0.1:0", "--web",
		"127.0.0.1:0"}}, `FULLPIPE_KEY=(\S+ fullpipe measure \S+)`)
	defer endServe()
	key, peer, _ := strings.Cut(at[0], " fullpipe measure ")
	_, _, endUI := startFlooded(t, floodedServer{args: []string{"ui", "--no-open"}}, `(https?://\S+)`)
	defer endUI()
	page := filepath.Join(named, "sweep.html")
	mayRead := []string{page} // the user gave its name
	for _, c := range []struct {
		hub  bool
		args string
	}{
		{false, "key new office --keys " + keys},
		{false, "key rotate office --overlap 1h --keys " + keys},
		{false, "measure " + peer + " --key " + key + " -t 200ms"},
		{false, "recheck " + peer + " --key " + key + " -t 200ms"},
		{false, "sweep " + peer + " --key " + key + " -t 100ms --repeats 2 --html " + page},
		{false, "watch --record --for 2s --every 1s"},
		{true, "user add anna --role viewer"},
		{true, "token"},
		{true, "backup " + filepath.Join(named, "backup.db")},
	} {
		var text bytes.Buffer
		status := 0
		if c.hub {
			words := append([]string{"fullpipe-hub"}, strings.Fields(c.args)...)
			status = hub.Run(t.Context(), words, strings.NewReader(""), &text, &text)
		} else {
			status = run(t.Context(), strings.Fields(c.args), console.NewStreams(strings.NewReader(""), &text, &text))
		}
		if status != 0 {
			t.Errorf("%s: status %d: %s", c.args, status, text.String())
		}
	}
	found := map[string]bool{}
	for _, dir := range []string{home, named} {
		err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
			if err != nil || name == home || name == named {
				return err
			}
			info, err := d.Info()
			if err != nil {
				return err
			}
			t.Log(info.Mode(), strings.TrimPrefix(name, dir))
			if info.Mode().Perm()&0o077 != 0 && !slices.Contains(mayRead, name) {
				t.Errorf("%s: %v: others may use it", name, info.Mode())
			}
			found[d.Name()] = true
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"history.db", "history.db-wal", "ca.key", "ca.pem", "hub.json", "agent.json",
		"agent.seed", "agent.lock", "seal_key", "keys.toml", "backup.db"} {
		if !found[name] {
			t.Errorf("no file %s: the test shows nothing about it", name)
		}
	}
}
