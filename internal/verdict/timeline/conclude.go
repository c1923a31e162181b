package timeline

import (
	"slices"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/flow"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
	"github.com/fullpipe-net/fullpipe/internal/verdict/rule"
	"github.com/fullpipe-net/fullpipe/internal/verdict/threshold"
)

// conclude adds to a headline its subtype, candidates, confidence, evidence and prediction.
func (t *timeline) conclude(g *Diagnosis) {
	t.verdict = g.Verdict
	v := &t.verdict
	if s, found := rule.First(subtypes, v.Limiter, t); found {
		v.Subtype = s.name
		if s.of != "" {
			v.Shares[s.of] += v.Shares[v.Limiter]
			delete(v.Shares, v.Limiter)
			v.Limiter = s.of
		}
	}
	if all, found := rule.First(candidates, v.Limiter, t); found {
		v.Candidates = slices.Clone(all)
	}
	for i := range furtherCandidates {
		if c := &furtherCandidates[i]; c.Limiter == v.Limiter && c.When.IsTrue(t) {
			v.Candidates = append(v.Candidates, c.Then...)
		}
	}
	v.Confidence = verdict.Low
	if v.Limiter != verdict.Mixed && v.Limiter != verdict.Unknown {
		v.Confidence = rule.Confidence(levels, steps, v.Limiter, t)
	}
	v.Evidence = t.evidence(v.Shares)
	g.Verdict = *v
	g.Prediction = t.predict(g.Verdict)
}

// evidence returns what supports each limiter with a share of the time worth mentioning, and the
// caveats.
func (t *timeline) evidence(shares verdict.Shares) (all []verdict.Evidence) {
	for _, name := range shares.Top() {
		if shares[name] < threshold.EvidenceShare.Value {
			continue
		}
		if f, found := rule.First(supports, name, t); found {
			v := verdict.Values{"time_ratio": shares[name]}
			if f.values != nil {
				f.values(t, v)
			}
			all = append(all, verdict.Evidence{Limiter: name, Code: f.code, Values: v})
		}
	}
	for i := range caveats {
		c := &caveats[i]
		if !c.When.IsTrue(t) {
			continue
		}
		e := verdict.Evidence{Limiter: c.Limiter, Code: c.Then.code}
		if c.Then.values != nil {
			e.Values = verdict.Values{}
			c.Then.values(t, e.Values)
		}
		all = append(all, e)
	}
	return all
}

// cutsSegments reports whether more segments than the last of a transfer are below the MSS.
func (t *timeline) cutsSegments() bool {
	return float64(t.d.SmallSegments) > threshold.SmallShare.Value*float64(t.d.Segments)
}

// pathRate adds the best rate, which lasted for the limiter's time; else the mean rate in that time. The best of a
// connection that shares the link, or is often idle, does not last.
func (t *timeline) pathRate(name verdict.Name, v verdict.Values) {
	mean := t.delivered[name] / max(t.time[name], 1e-9)
	if t.capacity > threshold.CarriedMax.Value*mean && mean > 0 {
		v["mean_bps"] = mean * 8
		return
	}
	v["best_bps"] = t.capacity * 8
}

func (t *timeline) clock(c flow.Clock) (sum float64) {
	for i := range t.d.Slices {
		sum += float64(t.d.Slices[i].Clock[c]) / 1e9
	}
	return sum
}

func (t *timeline) meanRTT() time.Duration {
	var sum, n int64
	for i := range t.d.Slices {
		sum += t.d.Slices[i].RTTSum
		n += int64(t.d.Slices[i].RTTs)
	}
	if n == 0 {
		return 0
	}
	return time.Duration(sum / n)
}
