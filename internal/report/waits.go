package report

import (
	"time"

	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/waits"
)

// Waits describes what a program waited for, the longest first.
func Waits(sampled []waits.Wait) (all []record.Wait) {
	total := time.Duration(0)
	for _, w := range sampled {
		total += w.Time
	}
	for _, w := range sampled {
		all = append(all, record.Wait{Kind: string(w.Kind), Object: w.Object, Program: w.Program,
			Seconds: w.Time.Seconds(), Share: w.Time.Seconds() / total.Seconds()})
	}
	return all
}
