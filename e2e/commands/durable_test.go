//go:build linux

package commands

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/e2e/harness"
	printed "github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/store/pgtest"
)

// keepers are the programs that keep results, each as its user calls it.
var keepers = []string{"measure FAR -t 100ms -d up --json", "recheck FAR -t 200ms -d up --json",
	"measure FAR -t 100ms --json", "tune FAR -d up --budget 1s --max-bytes 20MB --json",
	"measure FAR -t 100ms -d down --json",
	"sweep FAR -d up --send-buffers 64k --receive-buffers 64k --time 100ms --json"}

// TestKilledProgramsKeepConfirmedResults kills programs at any moment, three at a time on one history, and kills a
// PostgreSQL server too. Each result that a program confirmed as stored is there once, and every stored result can be
// read.
func TestKilledProgramsKeepConfirmedResults(t *testing.T) {
	t.Parallel()
	test := func(t *testing.T, url string, disturb func(round int)) {
		t.Parallel()
		k := harness.NewSharedHistory(t, url)
		const rounds = 6
		for round := range rounds {
			var running sync.WaitGroup
			for worker := range 3 {
				n := round*3 + worker
				kill := time.Duration(0)
				if n%3 > 0 {
					kill = time.Duration(30+n*71%300) * time.Millisecond
				}
				running.Go(func() { k.Run(kill, keepers[(n+n/len(keepers))%len(keepers)]) })
			}
			disturb(round)
			running.Wait()
		}
		k.Check()
	}
	t.Run("sqlite", func(t *testing.T) { test(t, "", func(int) {}) })
	t.Run("postgres", func(t *testing.T) {
		server := pgtest.Start(t)
		test(t, server.URL(t), func(round int) {
			if round%2 == 1 {
				server.Stop(t, []string{"kill", "immediate", "fast"}[round/2])
				server.Restart(t)
			}
		})
	})
}

// fills is a shell script on a small disk, $1: it measures, leaves LEFT KiB free, measures until a result does not
// fit, twice more, and once when there is room again. $2 collects the output of the commands.
const fills = `mount -t tmpfs -o size=1m none "$1" || exit 77
one() { "$F" measure "$FAR" -t 100ms -d up --json >"$2/$n.json" 2>"$2/$n.err" || echo "status $?"; n=$((n+1)); }
n=0; full=0
one "$@"; one "$@"
head -c $(($(df --output=avail -k "$1" | tail -n 1)-LEFT))k /dev/zero >"$1/ballast"
while [ $full -lt 3 ] && [ $n -lt 40 ]; do
	one "$@"
	if grep -q 'not kept' "$2/$((n-1)).err"; then full=$((full+1)); fi
done
rm "$1/ballast"
one "$@"
FULLPIPE_STORE=$THEN "$F" history --json --limit 0 >"$2/list"
ls "$1/outbox" 2>/dev/null | wc -l`

// TestFullDiskIsSaid fills the disk of the history: every result is printed, each result that is not kept is
// reported, and every other one is there, once.
func TestFullDiskIsSaid(t *testing.T) {
	t.Parallel()
	test := func(t *testing.T, first, then, left string) {
		t.Parallel()
		k := harness.NewSharedHistory(t, first)
		said := t.TempDir()
		cmd := exec.Command("sh", "-c", fills, "sh", k.Dir, said)
		cmd.Env = append(k.Env, "F="+k.Program, "FAR="+k.Far, "THEN="+then, "LEFT="+left)
		cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}
		out, err := cmd.Output()
		if err != nil || strings.TrimSpace(string(out)) != "0" {
			t.Errorf("%v: %s", err, out)
		}
		var all printed.History
		text, err := os.ReadFile(filepath.Join(said, "list"))
		if err != nil || json.Unmarshal(text, &all) != nil {
			t.Fatalf("%v: %s", err, text)
		}
		there := map[string]bool{}
		for _, r := range all.Runs {
			there[r.ID] = true
		}
		printedAll, _ := filepath.Glob(filepath.Join(said, "*.json"))
		kept := 0
		for _, file := range printedAll {
			var doc struct{ ID string }
			text, err := os.ReadFile(file)
			notes, err2 := os.ReadFile(strings.TrimSuffix(file, ".json") + ".err")
			if err != nil || err2 != nil || json.Unmarshal(text, &doc) != nil {
				t.Fatalf("%v, %v: %s: %s", err, err2, text, notes)
			}
			isKept := !bytes.Contains(notes, []byte("not kept"))
			if isKept {
				kept++
			} else if !bytes.Contains(notes, []byte("full")) && !bytes.Contains(notes, []byte("no space left")) {
				t.Errorf("why it is not kept: %s", notes)
			}
			if there[doc.ID] != isKept {
				t.Errorf("%s is there: %v; it was said: %s", doc.ID, there[doc.ID], notes)
			}
		}
		if len(all.Runs) != len(there) || len(there) != kept || kept < 3 || kept > len(printedAll)-3 {
			t.Errorf("%d results of %d, %d are listed", kept, len(printedAll), len(all.Runs))
		}
		t.Logf("%d of %d results were kept", kept, len(printedAll))
	}
	t.Run("sqlite", func(t *testing.T) { test(t, "", "", "96") })
	t.Run("postgres", func(t *testing.T) {
		test(t, "postgres://127.0.0.1:1/away", pgtest.Start(t).URL(t), "40")
	})
}
