package report

import (
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/record"
)

// TestStandings_LastingFall checks that a path that fell stays lower than before, however many results say so, until
// its fall is accepted.
func TestStandings_LastingFall(t *testing.T) {
	const good = 30
	runs := make([]record.HistoryRun, 0, good+60)
	add := func(bps float64) {
		bps *= 1 + 0.01*float64(len(runs)%5)
		runs = append(runs, record.HistoryRun{Outcome: record.Done, StartedAt: time.Unix(int64(len(runs)), 0),
			Directions: []record.Figure{{Direction: "up", GoodputBps: &bps}}})
	}
	newest := func() record.KeptPoint { return Standings(runs, 1)[0].Results[0] }
	for range good {
		add(38e6)
	}
	for range 45 {
		add(21e6)
	}
	if p := newest(); p.Against != record.Lower || *p.UsualBps < 38e6 {
		t.Errorf("after 45 low results: %s, usual %v", p.Against, *p.UsualBps)
	}
	runs[len(runs)-1].Labels = map[string]string{record.AcceptedLabel: "yes"}
	for range 7 {
		add(21e6)
	}
	if p := newest(); p.Against != record.AsUsual || *p.UsualBps > 23e6 {
		t.Errorf("accepted: %s, usual %v", p.Against, *p.UsualBps)
	}
	add(9e6)
	if p := newest(); p.Against != record.Lower {
		t.Errorf("fell again: %s", p.Against)
	}
}
