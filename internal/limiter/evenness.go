package limiter

import (
	"slices"
	"time"
)

// evennessOf is how evenly data arrives within a round trip: the mean rate as a share of
// the best tenth of stretches of at most half a round trip. A link that is full delivers
// without a break, whatever stands in its queue; windows that go out in bursts leave it
// idle in between, though their own bursts queue. It is 0 where the samples lie too far
// apart to tell.
func (p *path) evennessOf(all []*connection) float64 {
	const (
		segments = 10 // that a stretch must hold on average
		enough   = 10 // stretches
	)
	if p.mean <= 0 || p.rtt <= 0 {
		return 0
	}
	least := seconds(segments * float64(all[0].mss) * 8 / p.mean)
	most := p.rtt / 2
	if least > most {
		return 0
	}
	var rates []float64
	var bytes float64
	var total time.Duration
	from := p.started
	before := deliveredBy(all, from)
	for i := range all[0].samples {
		at := all[0].samples[i].At
		if at < from+least {
			continue
		}
		now := deliveredBy(all, at)
		if at-from <= most {
			rates = append(rates, (now-before)*8/(at-from).Seconds())
			bytes += now - before
			total += at - from
		}
		from, before = at, now
	}
	if len(rates) < enough {
		return 0
	}
	slices.Sort(rates)
	return bytes * 8 / total.Seconds() / rates[len(rates)*9/10]
}
