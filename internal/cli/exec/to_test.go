package exec

import (
	"math/rand/v2"
	"net/netip"
	"strings"
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/search"
	"github.com/fullpipe-net/fullpipe/internal/stats"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/tune"
	"github.com/fullpipe-net/fullpipe/internal/tune/simpeer"
)

func TestRuleForAPath(t *testing.T) {
	near := &transfer.End{Streams: []transfer.Stream{{Remote: netip.MustParseAddrPort("[::ffff:192.0.2.7]:5201")}}}
	shown, undecided := stats.Interval{Low: 2, Mid: 3, High: 4}, stats.Interval{Low: 0.9, Mid: 3, High: 9}
	up := func(gain stats.Interval) tune.Direction {
		return tune.Direction{Direction: transfer.Up, Gain: &gain, Decision: tune.Decision{Strength: search.Shown},
			After: &tune.Measured{Typical: &transfer.Result{Spec: transfer.Spec{
				Near: transfer.Socket{SendBuffer: 4 << 20}, Far: transfer.Socket{ReceiveBuffer: 4 << 20}}}}}
	}
	likely := up(shown)
	likely.Decision.Strength = search.Likely
	for _, tt := range []struct {
		name string
		d    []tune.Direction
		want transfer.Socket
		note string
	}{
		{"shown to help", []tune.Direction{up(shown)}, transfer.Socket{SendBuffer: 4 << 20},
			"far end, which exec cannot set"},
		{"likely", []tune.Direction{likely}, transfer.Socket{}, "no change was shown to help"},
		{"not shown", []tune.Direction{up(undecided)}, transfer.Socket{}, "no change was shown to help"},
		{"another remedy", []tune.Direction{{Direction: transfer.Up, Remedies: []tune.Remedy{
			{Gain: shown, Spec: transfer.Spec{Streams: 4}},
			{Gain: stats.Interval{Low: 1.4, Mid: 1.5, High: 1.6}, Spec: transfer.Spec{Near: transfer.Socket{Congestion: "bbr"}}},
		}}}, transfer.Socket{Congestion: "bbr"}, "1.5 times the goodput with bbr"},
		{"both directions", []tune.Direction{up(shown), {Direction: transfer.Down, Gain: &shown,
			Decision: tune.Decision{Strength: search.Shown}, After: &tune.Measured{
				Typical: &transfer.Result{Spec: transfer.Spec{Near: transfer.Socket{ReceiveBuffer: 1 << 20, Clamp: 9000}}}}}},
			transfer.Socket{SendBuffer: 4 << 20, ReceiveBuffer: 1 << 20, Clamp: 9000}, "receive buffer 1 MiB"},
	} {
		rule, notes := ruleFor(&tune.Result{Near: near, Directions: tt.d})
		var got transfer.Socket
		if rule != nil {
			got = rule.Socket
			if rule.To.String() != "192.0.2.7/32" {
				t.Errorf("%s: rule for %v", tt.name, rule.To)
			}
		}
		if got != tt.want || !strings.Contains(strings.Join(notes, "\n"), tt.note) {
			t.Errorf("%s: %+v, notes %q; want %+v and %q", tt.name, got, notes, tt.want, tt.note)
		}
	}
}

// TestRuleForAPath_LikelyGain checks by whole tunings that exec sets nothing where the gain is only likely, neither the
// chosen setup nor another one.
func TestRuleForAPath_LikelyGain(t *testing.T) {
	likely, shown := 0, 0
	for seed := range uint64(40) {
		peer := simpeer.RandomLossy(rand.New(rand.NewPCG(7000+seed, 7)))
		result, err := tune.Run(t.Context(), tune.Config{Peer: peer, Directions: []transfer.Direction{transfer.Up},
			Seed: seed})
		if err != nil {
			t.Fatal(err)
		}
		d := &result.Directions[0]
		spec, _ := helped(d)
		switch {
		case d.Chosen == nil:
		case d.Decision.Strength == search.Likely:
			likely++
			if spec != nil {
				t.Errorf("seed %d: %s is only likely to help, and exec sets %+v", seed, d.Chosen, spec.Near)
			}
		case d.Chosen.Streams < 2:
			shown++
			if spec == nil {
				t.Errorf("seed %d: exec sets nothing of %s", seed, d.Chosen)
			}
		}
	}
	if likely < 2 || shown < 5 {
		t.Errorf("only %d likely gains, %d shown ones", likely, shown)
	}
}
