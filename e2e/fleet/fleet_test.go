//go:build linux

package fleet

import (
	"database/sql"
	"encoding/json"
	"flag"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fullpipe-net/fullpipe/e2e/harness"
	"github.com/fullpipe-net/fullpipe/internal/store"
	"github.com/fullpipe-net/fullpipe/internal/store/pgtest"
	"github.com/fullpipe-net/fullpipe/internal/testenv"
)

// TestMain runs all tests at once: they mostly wait.
func TestMain(m *testing.M) {
	flag.Parse()
	err := flag.Set("test.parallel", "16")
	if err != nil {
		panic(err)
	}
	harness.Main(m, nil)
}

// alone runs a test again in namespaces of its own, while others run. It returns true in that run.
func alone(t *testing.T, needs ...testenv.Feature) bool {
	t.Helper()
	testenv.Need(t, append(needs, testenv.Root, testenv.NetworkNamespace, testenv.MountNamespace)...)
	t.Parallel()
	harness.Program(t) // built here, once for all
	harness.HubProgram(t)
	return testenv.Inside(t, unix.CLONE_NEWNET|unix.CLONE_NEWNS)
}

// faultsTime is how long TestFleet_Faults makes faults. TestFleet_Invariants of internal/fleet/hub makes more of them
// on a virtual clock.
const faultsTime = 20 * time.Second

// TestFleet_Faults makes faults with a hub whose history is a file.
func TestFleet_Faults(t *testing.T) {
	if alone(t) {
		makeFaults(t, faultsTime, nil)
	}
}

// TestFleet_FaultsPostgres makes faults with a hub whose history is a PostgreSQL database, which is killed too. It
// belongs to the bank; FULLPIPE_BANK_TIME replaces its hour.
func TestFleet_FaultsPostgres(t *testing.T) {
	if !alone(t, testenv.Quiet) {
		return
	}
	length := time.Hour
	if text := os.Getenv("FULLPIPE_BANK_TIME"); text != "" {
		asked, err := time.ParseDuration(text)
		if err != nil {
			t.Fatal(err)
		}
		length = asked
	}
	makeFaults(t, length, pgtest.Start(t))
}

// makeFaults kills agents, the hub and its database with SIGKILL, stops the hub and cuts uplinks, one fault every few
// seconds, each kind at least once. All results that were made are stored, none twice; no two runs met on a host or
// declared link by the agents' own logs; every due run ended with a reason.
func makeFaults(t *testing.T, length time.Duration, database *pgtest.Server) {
	t.Helper()
	f := newFleet(t, 8, faultMesh, database)
	rng := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 1))
	faults := map[string]int{}
	kinds := f.faultKinds()
	for began := time.Now(); len(faults) < len(kinds) || time.Since(began) < length; {
		for _, kind := range rng.Perm(len(kinds)) {
			time.Sleep(time.Second + time.Duration(rng.Int64N(int64(2*time.Second))))
			kinds[kind].make(rng)
			faults[kinds[kind].name]++
		}
	}
	f.awaitResults(minResults)
	f.ask("mesh", "apply", f.noMesh())
	f.drain()
	f.check(faults)
}

// minResults is the number of results without which faults show nothing.
const minResults = 10

// awaitResults waits until the hub has this number of results.
func (f *fleet) awaitResults(number int) {
	f.t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); time.Now().Before(deadline); time.Sleep(time.Second) {
		done := 0
		for _, j := range f.runs() {
			if j.State == "done" {
				done++
			}
		}
		if done >= number {
			return
		}
	}
}

// noMesh returns the name of a mesh file without runs.
func (f *fleet) noMesh() string {
	f.t.Helper()
	name := f.dir + "/none.toml"
	err := os.WriteFile(name, []byte("[limits]\nmost-full = 0.6\n"), 0o600)
	if err != nil {
		f.t.Fatal(err)
	}
	return name
}

// awaitLine waits until agents have printed events: pairs of both.
func (f *fleet) awaitLine(pairs ...string) {
	f.t.Helper()
	deadline := time.Now().Add(2 * time.Minute)
	for i := 0; i < len(pairs); i += 2 {
		for {
			f.mu.Lock()
			seen := slices.ContainsFunc(f.lines, func(l agentLine) bool { return l.agent == pairs[i] && l.Event == pairs[i+1] })
			f.mu.Unlock()
			if seen {
				break
			}
			if time.Now().After(deadline) {
				f.t.Fatalf("%s has not printed %q", pairs[i], pairs[i+1])
			}
			time.Sleep(100 * time.Millisecond)
		}
	}
}

// drain waits until all jobs have ended and all outboxes are empty.
func (f *fleet) drain() {
	f.t.Helper()
	deadline := time.Now().Add(3 * time.Minute)
	for {
		open := 0
		for _, j := range f.runs() {
			if j.State == "due" || j.State == "granted" {
				open++
			}
		}
		waiting, err := filepath.Glob(f.dir + "/h*/agent/outbox/*.result")
		if err != nil {
			f.t.Fatal(err)
		}
		if open == 0 && len(waiting) == 0 {
			return
		}
		if time.Now().After(deadline) {
			f.t.Fatalf("%d runs are open and %d results wait", open, len(waiting))
		}
		time.Sleep(time.Second)
	}
}

// check compares the agents' logs with the hub's database, and returns the number of runs that were made.
func (f *fleet) check(faults map[string]int) int {
	f.t.Helper()
	for _, p := range append(f.agents, f.center) {
		f.kill(p) // all lines are read when it has ended
	}
	made := map[string]int{}
	var busy []agentLine
	for _, line := range f.lines {
		if (line.Event == "done" || line.Event == "failed") && line.Role == "test" {
			busy = append(busy, line)
		}
		if line.Event == "done" {
			made[line.Run]++
		}
	}
	states := map[string]int{}
	stored := map[string]bool{}
	for _, j := range f.runs() {
		states[strings.TrimSpace(j.State+" "+j.Reason)]++
		stored[j.ID] = f.hasDocument(j.ID)
		if j.State != "done" && j.Reason == "" {
			f.t.Errorf("run %s has ended as %s without a reason", j.ID, j.State)
		}
	}
	for run, times := range made {
		if times != 1 || !stored[run] {
			f.t.Errorf("run %s was made %d times, stored: %v", run, times, stored[run])
		}
	}
	if faults != nil && states["done"] < minResults {
		f.t.Errorf("only %d results: the test shows nothing", states["done"])
	}
	f.t.Logf("faults %v; %d made by the logs, %d stored; %v", faults, len(made), states["done"], states)
	f.checkMeetings(busy)
	return len(made)
}

// hasDocument reports whether the hub's database has the document of a run, which may be an interrupted one.
func (f *fleet) hasDocument(run string) bool {
	f.t.Helper()
	url := ""
	if f.database != nil {
		url = f.database.URL(f.t)
	}
	s, err := store.OpenAt(f.t.Context(), filepath.Join(f.dir, "hub", "hub"), url)
	if err != nil {
		f.t.Fatal(err)
	}
	defer s.Close()
	_, _, err = s.Get(f.t.Context(), run)
	return err == nil
}

// checkMeetings fails where two runs met on a host or on an uplink.
func (f *fleet) checkMeetings(busy []agentLine) {
	f.t.Helper()
	site := map[string]string{"h0": "west", "h1": "west", "h2": "east", "h3": "east"}
	on := map[string][]agentLine{}
	for _, line := range busy {
		on[line.agent] = append(on[line.agent], line)
		on[line.Far] = append(on[line.Far], line)
		near := site[line.agent]
		far := site[line.Far]
		for _, one := range []string{near, far} {
			if one != "" && near != far {
				on[one] = append(on[one], line)
			}
		}
	}
	for resource, lines := range on {
		slices.SortFunc(lines, func(a, b agentLine) int { return a.Begin.Compare(b.Begin) })
		for i := 1; i < len(lines); i++ {
			if lines[i].Begin.Before(lines[i-1].End) {
				f.t.Errorf("%s: runs %s and %s met at %v", resource, lines[i-1].Run, lines[i].Run, lines[i].Begin)
			}
		}
	}
}

// awaitGrid waits until a number of cells of the grid have a result with a limiter that both ends' counts confirm.
func (f *fleet) awaitGrid(cells int) {
	f.t.Helper()
	deadline := time.Now().Add(2 * time.Minute)
	for {
		var doc struct {
			Rows []struct {
				Name  string
				Cells []struct{ Receiver, State, Limiter, Unconfirmed string }
			}
		}
		if err := json.Unmarshal([]byte(f.ask("grid", "--json")), &doc); err != nil {
			f.t.Fatal(err)
		}
		full := 0
		for _, row := range doc.Rows {
			for _, c := range row.Cells {
				switch {
				case c.State == "done" && c.Limiter != "" && !store.Doubtful(c.Unconfirmed):
					full++
				case c.State != "" && c.State != "due" && c.State != "granted":
					// A busy machine has spoilt the run; its task repeats it after an hour only.
					f.retest(row.Name, c.Receiver)
				}
			}
		}
		if full == cells {
			return
		}
		if time.Now().After(deadline) {
			f.t.Fatalf("%d of %d cells: %s%s%+v", full, cells, f.ask("runs"), f.ask("agents"), f.events())
		}
		time.Sleep(500 * time.Millisecond)
	}
}

// retest asks for a run of a pair now. The grid shows how it ended.
func (f *fleet) retest(sender, receiver string) {
	cmd := exec.Command(f.hub, "test", sender, receiver)
	cmd.Env = f.env
	if out, err := cmd.CombinedOutput(); err != nil {
		f.t.Logf("fullpipe-hub test %s %s: %v: %s", sender, receiver, err, out)
	}
}

// TestFleet_FirstGrid checks that a new fleet has its whole grid soon, with a limiter in each cell, and that both ends'
// counts agree.
func TestFleet_FirstGrid(t *testing.T) {
	if !alone(t) {
		return
	}
	f := newFleet(t, 3, "[task.throughput]\nbetween = [\"*\"]\nevery = \"1h\"\ntime = \"500ms\"\nmost = \"20MB\"\n",
		nil)
	f.awaitGrid(6)
	if text := f.ask("grid"); !strings.Contains(text, "h0") || !strings.Contains(text, "bit/s") {
		t.Errorf("the grid as text:\n%s", text)
	}
	f.ask("agents", "remove", "h2")
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(200 * time.Millisecond) {
		f.mu.Lock()
		lost := slices.ContainsFunc(f.lines, func(l agentLine) bool { return l.agent == "h2" && l.Event == "lost" })
		f.mu.Unlock()
		if lost {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("a removed agent keeps its connection")
		}
	}
}

// TestFleet_SlowStore locks the hub's database for some seconds. A host that joins meanwhile, and one that comes back,
// get in; the results of that time are stored once.
func TestFleet_SlowStore(t *testing.T) {
	if !alone(t) {
		return
	}
	f := newFleet(t, 4, faultMesh, nil)
	f.awaitLine("h0", "connected", "h1", "connected", "h2", "connected", "h3", "connected")
	f.kill(f.agents[0])
	f.kill(f.agents[1])
	if err := os.RemoveAll(filepath.Join(f.dir, "h1")); err != nil { // it joins again, as another one
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", "file:"+filepath.Join(f.dir, "hub", "hub", "history.db")+"?_txlock=immediate")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	tx, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	f.mu.Lock()
	f.lines = slices.DeleteFunc(f.lines, func(l agentLine) bool { return l.Event == "connected" })
	f.mu.Unlock()
	f.begin(f.agents[0])
	f.begin(f.agents[1])
	time.Sleep(12 * time.Second)
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	f.awaitLine("h0", "connected", "h1", "connected")
	f.ask("mesh", "apply", f.noMesh())
	f.drain()
	f.check(nil)
}
