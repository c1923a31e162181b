package report

import (
	"slices"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/advice"
	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/render/text"
	"github.com/fullpipe-net/fullpipe/internal/waits"
)

// AddWaits adds to a direction what its program waited for, the longest first, and the action
// against a kind of wait that takes most of the time.
func AddWaits(d *record.WatchedDirection, sampled []waits.Wait) {
	total := time.Duration(0)
	for _, w := range sampled {
		total += w.Time
	}
	shares := map[waits.Kind]float64{}
	for _, w := range sampled {
		share := w.Time.Seconds() / total.Seconds()
		shares[w.Kind] += share
		d.Waits = append(d.Waits, record.Wait{Kind: string(w.Kind), Object: w.Object, Program: w.Program,
			Seconds: w.Time.Seconds(), Share: share})
	}
	for kind, share := range shares {
		fix := advice.ForWait(&d.Verdict, string(kind), share, d.GoodputBps)
		if fix != nil { // of one kind at most: it is more than half
			d.Fix = slices.Concat(text.FixSentences([]advice.Fix{*fix}), d.Fix)
		}
	}
}
