package live

import (
	"slices"

	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// conclude makes the verdict from the time given away, with what supports it.
func (a *analysis) conclude() verdict.Verdict {
	v := verdict.Headline(a.shares())
	v.Evidence = a.evidence(v.Shares)
	v.Confidence = a.confidence(v)
	if v.Limiter != verdict.CPU && a.hostLate() {
		v.Evidence = append(v.Evidence, verdict.Evidence{Limiter: verdict.Unknown, Code: verdict.HostWasLate,
			Values: a.lateValues()})
	}
	if values := a.memoryValues(); len(values) > 0 {
		v.Evidence = append(v.Evidence, verdict.Evidence{Limiter: verdict.Unknown, Code: verdict.MemoryShort, Values: values})
	}
	switch v.Limiter {
	case verdict.ReceiverWindow:
		v.Subtype = a.connections[0].windowSubtype()
	case a.network.name:
		v.Subtype = a.network.subtype
	}
	if v.Limiter == verdict.Unknown {
		v.Candidates = slices.Clone(possible)
	}
	return v
}

// memoryValues tell of the kernels' shortage of memory at either end; empty where there was
// none.
func (a *analysis) memoryValues() verdict.Values {
	v := verdict.Values{}
	for end, e := range map[string]*transfer.End{"sender": a.sender, "receiver": a.receiver} {
		if e == nil || e.MemoryPressure == nil {
			continue
		}
		v[end+"_times"] = float64(e.MemoryPressure.Times)
		if e.MemoryPressure.Time > 0 {
			v[end+"_s"] = e.MemoryPressure.Time.Seconds()
		}
	}
	return v
}

// lateValues are the shares of the time in which a data thread of either end was ready and
// had no core.
func (a *analysis) lateValues() verdict.Values {
	v := verdict.Values{}
	if a.sender.CPU != nil {
		v["sender_starved_ratio"] = a.sender.CPU.ThreadRunDelay
	}
	if a.receiver != nil && a.receiver.CPU != nil {
		v["receiver_starved_ratio"] = a.receiver.CPU.ThreadRunDelay
	}
	return v
}
