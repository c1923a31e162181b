//go:build linux

package fleet

import (
	"database/sql"
	"encoding/json"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/testenv"
)

// killsVariable sets how often TestFleet_Kills kills a hub or an agent, in place of 200 times.
const killsVariable = "FULLPIPE_TEST_KILLS"

// TestFleet_Kills kills agents, and the hub at times. Each result is stored once. The hub charges a finished run with
// its payload, and each agent's own account is between the payload of its finished runs and the size of all its orders.
// It belongs to the bank.
func TestFleet_Kills(t *testing.T) {
	kills := 200
	if n, err := strconv.Atoi(os.Getenv(killsVariable)); err == nil {
		kills = n
	}
	if !alone(t, testenv.Quiet) {
		return
	}
	f := newFleet(t, 8, faultMesh, nil)
	// A direction takes a second, so that kills meet transfers.
	limits := []byte(fleetLimits + "most-rate = \"40mbit\"\n")
	if err := os.WriteFile(filepath.Join(f.dir, "agent.toml"), limits, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, a := range f.agents {
		f.kill(a)
		f.begin(a)
	}
	rng := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 2))
	killed := map[string]int{}
	for range kills {
		p := f.agents[rng.IntN(len(f.agents))]
		if rng.IntN(8) == 0 {
			p = f.center
		}
		killed[p.name]++
		f.kill(p)
		time.Sleep(time.Duration(rng.Int64N(int64(time.Second))))
		f.begin(p)
		time.Sleep(500*time.Millisecond + time.Duration(rng.Int64N(int64(1500*time.Millisecond))))
	}
	f.ask("mesh", "apply", f.noMesh())
	f.drain()
	f.check(nil)
	t.Logf("killed: %v", killed)
	f.checkCharges(killed)
}

// runSize is the greatest payload of a run of faultMesh, both ways.
const runSize = 2 * 5e6

// checkCharges compares what the hub and the agents charged with the runs in the hub's database.
func (f *fleet) checkCharges(killed map[string]int) {
	f.t.Helper()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(f.dir, "hub", "hub", "history.db"))
	if err != nil {
		f.t.Fatal(err)
	}
	defer db.Close()
	rows, err := db.Query("SELECT a.name, b.name, state, granted_ns, charged, coalesce(near_up, 0) + " +
		"coalesce(near_down, 0) FROM job JOIN agent a ON a.id = job.a JOIN agent b ON b.id = job.b")
	if err != nil {
		f.t.Fatal(err)
	}
	defer rows.Close()
	done := map[string]int64{}   // payload by agent
	orders := map[string]int64{} // granted runs
	for rows.Next() {
		var a, b, state string
		var granted, charged, moved int64
		if err := rows.Scan(&a, &b, &state, &granted, &charged, &moved); err != nil {
			f.t.Fatal(err)
		}
		if state == "done" && charged != moved || charged > runSize*11/10 {
			f.t.Errorf("a run that is %s and moved %d bytes is charged with %d", state, moved, charged)
		}
		for _, name := range []string{a, b} {
			if state == "done" {
				done[name] += moved
			}
			if granted > 0 {
				orders[name]++
			}
		}
	}
	if err := rows.Err(); err != nil {
		f.t.Fatal(err)
	}
	for _, a := range f.agents {
		var spent struct {
			Bytes int64 `json:"bytes"`
		}
		text, err := os.ReadFile(filepath.Join(f.dir, a.name, "agent", "spent.json"))
		if err == nil {
			err = json.Unmarshal(text, &spent)
		}
		// A killed agent's order stays charged, and the run may be ordered the other way round.
		most := (orders[a.name] + int64(killed[a.name])) * runSize
		if err != nil || spent.Bytes < done[a.name] || spent.Bytes > most {
			f.t.Errorf("%s charged %d bytes: its finished runs moved %d, its %d orders at most %d; %v", a.name, spent.Bytes,
				done[a.name], orders[a.name], most, err)
		}
		f.t.Logf("%s: %d kills, %d orders, charged %d bytes, finished runs moved %d", a.name, killed[a.name], orders[a.name],
			spent.Bytes, done[a.name])
	}
}
