package report

import (
	"slices"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/advice"
	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/render/text"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
	"github.com/fullpipe-net/fullpipe/internal/waits"
)

// ofProgram describes what a program waited for, where it limits a direction, the longest first. It
// puts the action against a kind of wait that takes most of the time before the fixes.
func ofProgram(sampled []waits.Wait, v verdict.Verdict, goodputBps float64,
	fixes []advice.Fix) ([]record.Wait, []advice.Fix) {
	if v.Limiter != verdict.Application && v.Limiter != verdict.ReceiverApplication {
		return nil, fixes
	}
	total := time.Duration(0)
	for _, w := range sampled {
		total += w.Time
	}
	var all []record.Wait
	shares := map[waits.Kind]float64{}
	for _, w := range sampled {
		share := w.Time.Seconds() / total.Seconds()
		shares[w.Kind] += share
		one := record.Wait{Kind: string(w.Kind), Object: w.Object, Program: w.Program, Seconds: w.Time.Seconds(),
			Share: share, Confidence: w.Confidence}
		switch {
		case w.Write:
			one.Operation = "write"
		case w.Kind == waits.Disk:
			one.Operation = "read"
		}
		if r := w.Requests; r != nil {
			one.Requests = r.Count
			one.RequestMeanS = r.Time.Seconds() / float64(r.Count)
			one.InFlight = r.Time.Seconds() / total.Seconds()
		}
		all = append(all, one)
	}
	for kind, share := range shares {
		fix := advice.ForWait(&v, string(kind), share, goodputBps)
		if fix != nil { // of one kind at most: it is more than half
			fixes = slices.Concat(text.FixSentences([]advice.Fix{*fix}), fixes)
		}
	}
	return all, fixes
}
