//go:build linux

package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	printed "github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/store/pgtest"
)

// keeping is one history that several programs write, and what they said of it.
type keeping struct {
	t       *testing.T
	program string
	far     string
	dir     string
	env     []string

	mu    sync.Mutex      // guards what follows
	begun int             // programs, each of which keeps one result at the most
	said  map[string]bool // ids of results that were said to be kept
}

func newKeeping(t *testing.T, url string) *keeping {
	t.Helper()
	k := &keeping{t: t, program: fullpipeProgram(t), dir: t.TempDir(), said: map[string]bool{}}
	far, key := served(t, k.program)
	k.far = "fullpipe://" + far
	k.env = append(os.Environ(), "FULLPIPE_HISTORY="+k.dir, "FULLPIPE_CONFIG=", "FULLPIPE_STORE="+url, "FULLPIPE_KEY="+key)
	return k
}

// begins runs a program, and kills it after a time unless that is 0. A result that it printed
// counts as said to be kept where it ended by itself and told of nothing that was not.
func (k *keeping) begins(kill time.Duration, line string) {
	cmd := exec.Command(k.program, strings.Fields(strings.ReplaceAll(line, "FAR", k.far))...)
	cmd.Env = k.env
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Start(); err != nil {
		k.t.Error(err)
		return
	}
	if kill > 0 {
		defer time.AfterFunc(kill, func() { cmd.Process.Kill() }).Stop()
	}
	err := cmd.Wait()
	k.mu.Lock()
	defer k.mu.Unlock()
	k.begun++
	switch status := cmd.ProcessState.Sys().(syscall.WaitStatus); {
	case status.Signaled() && kill > 0:
		return
	case strings.HasPrefix(line, "recheck") && status.ExitStatus() == 1: // it could not ask for the path's past
	case err != nil && status.ExitStatus() != 3: // which says that nothing was gained
		k.t.Errorf("%s: %v: %s", line, err, errs.String())
		return
	}
	var doc struct {
		ID    string
		Tests []struct {
			ID    string `json:"run_id"`
			Error *printed.Failure
		}
	}
	if err := json.Unmarshal(out.Bytes(), &doc); err != nil || strings.Contains(errs.String(), "not kept") {
		k.t.Errorf("%s: %v: %s", line, err, errs.String())
		return
	}
	for _, one := range doc.Tests {
		if doc.ID = ""; one.Error == nil {
			doc.ID = one.ID
		}
	}
	if doc.ID != "" {
		k.said[doc.ID] = true
	}
}

// list are the results that the history holds, by id, each of which can be read.
func (k *keeping) list() map[string]printed.HistoryRun {
	k.t.Helper()
	ask := func(args ...string) []byte {
		cmd := exec.Command(k.program, append([]string{"history"}, args...)...)
		cmd.Env = k.env
		var errs bytes.Buffer
		cmd.Stderr = &errs
		out, err := cmd.Output()
		if err != nil || errs.Len() > 0 {
			k.t.Fatalf("history %v: %v: %s", args, err, errs.String())
		}
		return out
	}
	var all printed.History
	if err := json.Unmarshal(ask("--json", "--limit", "0"), &all); err != nil {
		k.t.Fatal(err)
	}
	runs := map[string]printed.HistoryRun{}
	for _, r := range all.Runs {
		runs[r.ID] = r
	}
	read := bytes.Count(ask("export"), []byte("\n"))
	if len(runs) != len(all.Runs) || read != len(runs) {
		k.t.Errorf("%d results are listed of %d ids, and %d can be read", len(all.Runs), len(runs), read)
	}
	if left, _ := filepath.Glob(filepath.Join(k.dir, "outbox", "*.result")); len(left) > 0 {
		k.t.Errorf("left in the outbox: %q", left)
	}
	return runs
}

// holds compares what the history has with what was said.
func (k *keeping) holds() {
	k.t.Helper()
	runs := k.list()
	for id := range k.said {
		if _, there := runs[id]; !there {
			k.t.Errorf("%s was said to be kept, and is lost", id)
		}
	}
	if len(runs) > k.begun {
		k.t.Errorf("%d results of %d programs", len(runs), k.begun)
	}
	k.t.Logf("%d programs, %d said that their result is kept, %d are there", k.begun, len(k.said), len(runs))
}

// keepers are the programs that keep results, each as its user calls it.
var keepers = []string{"measure FAR -t 100ms -d up --json", "recheck FAR -t 200ms -d up --json",
	"measure FAR -t 100ms --json", "tune FAR -d up --budget 1s --max-bytes 20MB --json",
	"measure FAR -t 100ms -d down --json",
	"sweep FAR -d up --send-buffers 64k --receive-buffers 64k --time 100ms --json"}

// TestKilledProgramsKeepWhatTheySaid kills programs at any moment, three at a time on one
// history, and where that is PostgreSQL kills its server too: what one of them said to have
// kept is there, once, and all that is there can be read.
func TestKilledProgramsKeepWhatTheySaid(t *testing.T) {
	t.Parallel()
	test := func(t *testing.T, url string, disturb func(round int)) {
		t.Parallel()
		k := newKeeping(t, url)
		const rounds = 6
		for round := range rounds {
			var running sync.WaitGroup
			for worker := range 3 {
				n := round*3 + worker
				kill := time.Duration(0)
				if n%3 > 0 {
					kill = time.Duration(30+n*71%300) * time.Millisecond
				}
				running.Go(func() { k.begins(kill, keepers[(n+n/len(keepers))%len(keepers)]) })
			}
			disturb(round)
			running.Wait()
		}
		k.holds()
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

// TestKilledPageKeepsWhatItSaid kills ui while labels are put and while it tests a path: what it
// answered is there, and the test that ended with it is there once or not at all.
func TestKilledPageKeepsWhatItSaid(t *testing.T) {
	t.Parallel()
	k := newKeeping(t, "")
	k.begins(0, "measure FAR -t 100ms --json")
	id, key := "", ""
	for _, r := range k.list() {
		id, key = r.ID, r.PathKey
	}
	acknowledged := map[string]bool{}
	for round := range 3 {
		ui := runUI(t, k.program, k.env)
		v := ui.opened(t)
		if status, body := v.ask("POST", "/api/v1/paths/"+key+"/retest"); status != 200 && status != 501 {
			t.Fatalf("%d: %s", status, body)
		}
		k.begun++
		put := make(chan string)
		go func() {
			defer close(put)
			for n := 0; ; n++ {
				name := fmt.Sprintf("n%d-%d", round, n)
				if status, _ := v.ask("PUT", "/api/v1/runs/"+id+"/labels/"+name+"?value=x"); status != 200 {
					return
				}
				put <- name
			}
		}()
		for name := range put {
			if acknowledged[name] = true; len(acknowledged) == 8*(round+1) {
				ui.cmd.Process.Kill()
			}
		}
		ui.cmd.Wait()
	}
	runs := k.list()
	for name := range acknowledged {
		if runs[id].Labels[name] != "x" {
			t.Errorf("the label %s is lost", name)
		}
	}
	k.holds()
}

// TestBankKilledWatch kills three `watch --record` that share a history in their second minute:
// the first one of each is there, once, in a record that says that it was cut off. About a minute.
func TestBankKilledWatch(t *testing.T) {
	bankOnly(t)
	const watches = 3
	k := newKeeping(t, "")
	ended := make(chan string, watches)
	var all []*exec.Cmd
	for range watches {
		watch := exec.Command(k.program, "watch", "--record", "--quiet", "--json")
		watch.Env = k.env
		var errs bytes.Buffer
		watch.Stderr = &errs
		if err := watch.Start(); err != nil {
			t.Fatal(err)
		}
		all = append(all, watch)
		k.begun++
		go func() { ended <- fmt.Sprint(watch.Wait(), ": ", errs.String()) }()
		t.Cleanup(func() { watch.Process.Kill() })
	}
	for deadline := time.Now().Add(5 * time.Minute); len(k.list()) < watches; {
		select {
		case why := <-ended:
			t.Fatalf("a watch ended: %s", why)
		case <-time.After(time.Second):
		}
		if time.Now().After(deadline) {
			t.Fatal("not every watch has kept a minute in five")
		}
	}
	for _, watch := range all {
		watch.Process.Kill()
	}
	for range all {
		<-ended
	}
	cut := 0
	for id, r := range k.list() {
		k.said[id] = true
		if r.Kind == "watch" && r.Outcome == printed.Interrupted {
			cut++
		}
	}
	k.holds()
	record(t, bankRow{Section: "History", Case: "three watch --record with one history, killed in their second minute",
		Claim: "the minutes that were over are kept, once", Measured: fmt.Sprintf("%d records, %d of them cut off",
			len(k.said), cut), Spread: "3 watches", Verdict: passed(len(k.said) == watches && cut == watches),
		Command: "make bank RUN=TestBankKilledWatch"})
}

// fills is a shell's script on a small disk, $1: it measures, leaves LEFT KiB free, measures until
// what is measured does not fit, twice more, and once when there is room again. $2 takes what
// the commands say.
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

// TestFullDiskIsSaid fills the disk that the history is on: every result is printed, each that
// is not kept is said to be, and every other one is there, once.
func TestFullDiskIsSaid(t *testing.T) {
	t.Parallel()
	test := func(t *testing.T, first, then, left string) {
		t.Parallel()
		k := newKeeping(t, first)
		said := t.TempDir()
		cmd := exec.Command("sh", "-c", fills, "sh", k.dir, said)
		cmd.Env = append(k.env, "F="+k.program, "FAR="+k.far, "THEN="+then, "LEFT="+left)
		cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}
		out, err := cmd.Output()
		if cmd.ProcessState == nil || cmd.ProcessState.ExitCode() == 77 {
			if os.Getenv("CI") != "" {
				t.Fatal(err)
			}
			t.Skipf("no mount namespace for us here: %v", err)
		}
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
