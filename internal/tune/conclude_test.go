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

// TestConclude_OneArithmetic checks that a candidate's factor is that of the goodputs that are printed. Its interval
// stays where it has that factor; otherwise it is that of all runs.
func TestConclude_OneArithmetic(t *testing.T) {
	for _, c := range []struct {
		inTurn, want stats.Interval
	}{
		{stats.Interval{Low: 2, Mid: 5.25, High: 12}, stats.Interval{Low: 2, Mid: 3, High: 12}},
		{stats.Interval{Low: 9, Mid: 10.5, High: 12}, stats.Interval{Mid: 3, High: math.Inf(1)}},
		{stats.Interval{Mid: 10.5, High: math.Inf(1)}, stats.Interval{Mid: 3, High: math.Inf(1)}},
	} {
		candidate := Setup{Streams: 4}
		l := looped(Path{CapacityBps: 2e9, RTT: 4e7, MSS: 1448}, ran(t, Setup{}, 425e6, verdict.Verdict{}),
			ran(t, candidate, 1275e6, verdict.Verdict{}))
		l.compared.remedies = []Remedy{{Setup: candidate, Goodput: 1275e6, Runs: 1, Gain: c.inTurn}}
		l.conclude(false)
		if got := l.out.Remedies[0].Gain; math.Abs(got.Mid-c.want.Mid) > 0.01 || got.Low != c.want.Low ||
			got.High != c.want.High {
			t.Errorf("in turn %+v: printed %+v, want %+v", c.inTurn, got, c.want)
		}
	}
}
