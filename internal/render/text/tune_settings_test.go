package text

import (
	"strings"
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/plan"
	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/search"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// TestTuneSettings_OneTableARecipe checks that each recipe has a heading of its own, which names its scope, and that
// nothing is left to set where a change was kept that gives as much.
func TestTuneSettings_OneTableARecipe(t *testing.T) {
	one := func(recipe int, host string, by record.SettingBy, name string) record.TuneSetting {
		return record.TuneSetting{Host: host, Target: "linux-6.18", Recipe: recipe, By: by,
			Setting: plan.Setting{Name: name, Value: "1"}}
	}
	d := &record.TuneDirection{Direction: transfer.Up, Chosen: &record.TuneChosen{},
		After: &record.TuneMeasured{MedianBps: 90e6},
		Settings: []record.TuneSetting{one(1, "near", record.ByProgram, "SO_SNDBUF"),
			one(1, "near", record.ByProgram, "net.core.wmem_max"), one(1, "far", record.ByProgram, "SO_RCVBUF"),
			one(2, "near", record.ByHost, "net.ipv4.tcp_wmem"), one(3, "near", record.ByStreams, "connections at once")}}
	var got []string
	for _, s := range tuneSettings(d) {
		got = append(got, s.title)
		for _, row := range s.table.rows {
			got = append(got, strings.Join(row[:2], "|"))
		}
	}
	want := []string{"to set, as it was measured: in the programs", "this host (sender, linux-6.18)|SO_SNDBUF = 1",
		"|net.core.wmem_max = 1", "the far host (receiver, linux-6.18)|SO_RCVBUF = 1",
		"or instead: on the hosts, for every new connection", "this host (sender, linux-6.18)|net.ipv4.tcp_wmem = 1",
		"or instead: several connections in place of larger windows",
		"this host (sender, linux-6.18)|connections at once = 1"}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	d.Applied = &record.TuneApplied{Kept: true, After: &record.TuneMeasured{MedianBps: 85e6}}
	if left := tuneSettings(d); left != nil {
		t.Errorf("with a kept change: %v", left)
	}
	d.Applied.After.MedianBps = 50e6
	if tuneSettings(d) == nil {
		t.Error("the change gave half: nothing to set")
	}
}

// TestTuneRemedies_LikelyIsNotProven checks that no row says "helps" where the decision is only likely.
func TestTuneRemedies_LikelyIsNotProven(t *testing.T) {
	d := &record.TuneDirection{Decision: &record.TuneDecision{Strength: search.Shown},
		Chosen: &record.TuneChosen{Name: "bbr"},
		Remedies: []record.TuneRemedy{{Name: "bbr", Runs: 3,
			TuneGain: record.TuneGain{Factor: 4, CI95: &[2]float64{1.2, 13}}}}}
	for _, c := range []struct {
		strength search.Strength
		want     string
	}{{search.Shown, "helps, in 3 runs"}, {search.Likely, "likely helps, in 3 runs"}} {
		d.Decision.Strength = c.strength
		row := tuneRemedies(d).rows[0]
		if got := row[len(row)-1]; got != c.want+"; chosen" {
			t.Errorf("%v: %q, not %q", c.strength, got, c.want)
		}
	}
}
