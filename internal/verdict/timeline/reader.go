package timeline

import (
	"maps"
	"slices"

	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// shares returns each limiter's share of the time.
func (t *timeline) shares() verdict.Shares {
	shares := verdict.Shares{}
	total := 0.0
	for _, name := range slices.Sorted(maps.Keys(t.time)) { // sums in any other order differ in their last digit
		total += t.time[name]
	}
	for name, took := range t.time {
		if took > 0 {
			shares[name] = took / total
		}
	}
	t.readerPaced(shares)
	return shares
}

// readerPaced gives the receiving program the time in which the path delivered what that program had made room for,
// where this decides the verdict. However long the delivery took, the window closed again after it.
func (t *timeline) readerPaced(shares verdict.Shares) {
	if shares[verdict.ReceiverApplication] == 0 || verdict.Headline(shares).Limiter == verdict.ReceiverApplication {
		return
	}
	left := float64(t.d.ReaderPaced) / 1e9 / t.wall() // as the shares are
	for _, from := range []verdict.Name{verdict.Sender, verdict.Application, verdict.Bottleneck, verdict.Unknown} {
		moved := min(left, shares[from])
		left -= moved
		shares[verdict.ReceiverApplication] += moved
		shares[from] -= moved
		if shares[from] == 0 {
			delete(shares, from)
		}
	}
}
