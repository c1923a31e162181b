package tune

import (
	"math"
	"strings"
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/search"
	"github.com/fullpipe-net/fullpipe/internal/stats"
	"github.com/fullpipe-net/fullpipe/internal/tune/simpeer"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// A window that was clipped has one size in the rows and in the result: the one that was given.
func TestTune_NamesTheGrantedWindow(t *testing.T) {
	path := narrow()
	path.Ceiling = 200e3
	d := run(t, simpeer.New(path, 1), nil)
	if d.Chosen == nil || d.Verdict != search.Change || len(d.Remedies) == 0 {
		t.Fatalf("%s: %+v", d.Verdict, d.Remedies)
	}
	named := false
	for _, r := range d.Remedies {
		if strings.Contains(r.Name, "window of") {
			named = named || r.Name == d.Chosen.String()
			if !strings.Contains(r.Name, "window of 200,000 bytes") {
				t.Errorf("%s, compared with %s; chosen %s", r.Name, r.Base, d.Chosen)
			}
		}
	}
	if !named {
		t.Errorf("no row is named %s", d.Chosen)
	}
}

func TestLoop_WarningsNameTheGrantedWindow(t *testing.T) {
	l := &loop{runner: &runner{notes: &notes{}}, windows: &windowSearch{}}
	l.windows.answer.Asked = 1 << 20
	l.windows.answer.Window = 200_000
	for _, window := range []int{1 << 20, 64 << 10, 0} {
		l.notes.add(Statement{Code: GainUnproven, Setup: Setup{Window: window, Streams: 4}})
	}
	for i, want := range []int{200_000, 64 << 10, 0} {
		if got := l.warnings()[i].Setup; got != (Setup{Window: want, Streams: 4}) {
			t.Errorf("warning %d is about %s, want a window of %d", i, got, want)
		}
	}
}

// TestConclude_SingleRunsGain checks that the factor of a candidate with too few runs for an interval is that of the
// goodputs that are shown, and that a bounded factor stays.
func TestConclude_SingleRunsGain(t *testing.T) {
	for high, want := range map[float64]float64{math.Inf(1): 3, 12: 10.5} {
		l := looped(Path{CapacityBps: 2e9, RTT: 4e7, MSS: 1448}, ran(t, Setup{}, 425e6, verdict.Verdict{}))
		l.compared.remedies = []Remedy{{Setup: Setup{Streams: 4}, Goodput: 1275e6, Runs: 1,
			Gain: stats.Interval{Low: 9, Mid: 10.5, High: high}}}
		l.conclude(false)
		if got := l.out.Remedies[0].Gain.Mid; math.Abs(got-want) > 0.01 {
			t.Errorf("× %.2f, want %.2f", got, want)
		}
	}
}
