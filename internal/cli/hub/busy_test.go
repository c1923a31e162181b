package hub

import (
	"bytes"
	"database/sql"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/fullpipe-net/fullpipe/internal/cli/console"
	"github.com/fullpipe-net/fullpipe/internal/fleet/incident"
	"github.com/fullpipe-net/fullpipe/internal/store"
	"github.com/fullpipe-net/fullpipe/internal/testenv/must"
)

// TestCommands_BusyDatabase runs every command while another process has the database's write lock. Commands that read
// succeed; those that write say after some seconds that another process writes, with a remedy.
func TestCommands_BusyDatabase(t *testing.T) {
	dir := t.TempDir()
	mesh := filepath.Join(t.TempDir(), "mesh.toml")
	err := os.WriteFile(mesh, []byte("[limits]\nmost-full = 0.6\n"), 0o600)
	if err != nil {
		t.Fatal(err)
	}
	at := []byte(`{"urls":["https://127.0.0.1:1"]}`)
	must.Do(t, os.WriteFile(filepath.Join(dir, hubFileName), at, 0o600))
	f := must.Get(store.OpenFleet(t.Context(), dir, ""))(t)
	t.Cleanup(func() { f.Close() })
	busy, err := sql.Open("sqlite", "file:"+filepath.Join(dir, "history.db")+"?_txlock=immediate")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { busy.Close() })
	for i, text := range []string{"id0", "id1"} {
		_, err := busy.Exec("INSERT INTO agent(id, name, nkey, joined_ns) VALUES($1, $2, $1, 1)", text, []string{"a", "b"}[i])
		if err != nil {
			t.Fatal(err)
		}
	}
	silence := incident.Silence{ID: "known", Kind: "host", Name: "b", Until: time.Now().Add(time.Hour)}
	must.Do(t, f.AddSilence(t.Context(), silence))
	tx := must.Get(busy.Begin())(t)
	t.Cleanup(func() { _ = tx.Rollback() }) // the parallel tests run after this function

	commands := map[string]struct {
		args   []string
		writes bool
	}{
		"serve":         {args: []string{"--listen", "127.0.0.1:0", "--page", ""}, writes: true},
		"token":         {writes: true},
		"mesh check":    {args: []string{mesh}},
		"mesh apply":    {args: []string{mesh}, writes: true},
		"mesh show":     {},
		"agents":        {},
		"agents remove": {args: []string{"a"}, writes: true},
		"agents rename": {args: []string{"a", "c"}, writes: true},
		"agents label":  {args: []string{"a", "x=y"}, writes: true},
		"grid":          {},
		"runs":          {},
		"test":          {args: []string{"a", "b"}, writes: true},
		"incidents":     {},
		"silence":       {args: []string{"host", "a"}, writes: true},
		"silence end":   {args: []string{"known"}, writes: true},
		"user":          {},
		"user add":      {args: []string{"ann"}, writes: true},
		"user remove":   {args: []string{"ann"}, writes: true},
		"log":           {},
		"backup":        {args: []string{filepath.Join(t.TempDir(), "copy.db")}},
	}
	for _, name := range runnable(NewRoot(console.Streams{}), "") {
		c, known := commands[name]
		if !known {
			t.Errorf("%s: not in this test", name)
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out, failed bytes.Buffer
			args := append(strings.Fields("fullpipe-hub "+name), c.args...)
			began := time.Now()
			status := Run(t.Context(), append(args, "--dir", dir), strings.NewReader(""), &out, &failed)
			text := failed.String()
			switch {
			case !c.writes && status != 0:
				t.Errorf("it needs the write lock: %d %s", status, text)
			case c.writes && (status == 0 || !strings.Contains(text, "another process has been writing to it") ||
				!strings.Contains(text, "fuser") || strings.Contains(text, "SQLITE_BUSY")):
				t.Errorf("%d %s%s", status, out.String(), text)
			}
			t.Logf("%v", time.Since(began))
		})
	}
}

// runnable returns the commands that do something.
func runnable(cmd *cobra.Command, prefix string) (names []string) {
	for _, c := range cmd.Commands() {
		name := strings.TrimSpace(prefix + " " + c.Name())
		if c.Runnable() {
			names = append(names, name)
		}
		names = append(names, runnable(c, name)...)
	}
	slices.Sort(names)
	return names
}
