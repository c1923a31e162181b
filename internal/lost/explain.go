package lost

import (
	"slices"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// The thresholds of Explain.
const (
	// A counter that moved by less than this share of the lost segments does not count as a place.
	minMoved = 0.05
	// This share of a counter's moves, and of the retransmissions, must fit the others in time.
	minAligned = 0.8
	// A retransmission follows its drop after at most maxAge. The clocks of two ends and the
	// intervals of samples differ by less than clockError.
	clockError = 500 * time.Millisecond
	// The bytes of a counter, or the packets of one that does not count merged packets, differ from
	// the lost ones by at most this ratio.
	maxDifference = 0.3
	// The most segments of a merged packet, on average, if its bytes are not counted.
	maxMerged = 4
	// Packets of the other connections may be among those counted.
	minDifference = 3
	// The most packets that the sender's host drops for a lost one: TCP keeps the data of those that it
	// is refused. Queues of tbf dropped 1.2 to 1.5.
	maxRefused = 2
)

// The sizes of headers: of IPv4 and TCP with timestamps, and of IPv4 and UDP.
const (
	HeadersTCP = 52
	HeadersUDP = 28
)

// Counted is a place by counters.
type Counted struct {
	Sender   bool   // of the sender's host
	Index    int    // of the counter that moved most
	Place    string // the counter's, or that of another which counts the same packets
	Segments int64
	// Exact reports that the number of bytes or segments fits the lost ones.
	Exact bool
}

// Lost are the losses of a transfer: segments of MSS bytes by its sender's count, or datagrams.
type Lost struct {
	Segments, MSS, Headers int64
	Moves                  []transfer.Move // when they were retransmitted; nil: not known
}

// Explain returns the only place of both ends whose counters explain the losses. It is false where
// several places moved, or the numbers or times do not fit.
func (l Lost) Explain(sender, receiver []transfer.DropCounter) (found Counted, ok bool) {
	if l.Segments <= 0 {
		return Counted{}, false
	}
	type place struct {
		sender bool
		kind   string
	}
	greatest := map[place]int{} // the counters of one place may count the same packets
	countersOf := func(p place) []transfer.DropCounter {
		if p.sender {
			return sender
		}
		return receiver
	}
	for _, isSender := range []bool{true, false} {
		all := countersOf(place{sender: isSender})
		for i := range all {
			p := place{isSender, all[i].Place}
			if !l.moved(&all[i]) {
				continue
			}
			if before, is := greatest[p]; !is || all[i].Packets > all[before].Packets {
				greatest[p] = i
			}
		}
	}
	// A device also counts the drops of a CPU's backlog: those of its own packets.
	backlog := place{false, string(Backlog)}
	if i, is := greatest[backlog]; is {
		device := place{false, string(Device)}
		if j, is := greatest[device]; is && receiver[j].Packets <= receiver[i].Packets {
			delete(greatest, device)
			greatest[backlog] = j
		}
	}
	if len(greatest) != 1 {
		return Counted{}, false
	}
	for p, i := range greatest {
		c := &countersOf(p)[i]
		found = Counted{Sender: p.sender, Index: i, Place: p.kind}
		found.Segments, found.Exact, ok = l.fit(c, p.sender)
		ok = ok && l.follow(c)
	}
	return found, ok
}

// moved reports whether a counter moved by more than a few packets of others.
func (l Lost) moved(c *transfer.DropCounter) bool {
	packets := c.Packets
	if l.Moves != nil && c.Moves != nil {
		packets = 0
		for _, m := range c.Moves {
			if slices.ContainsFunc(l.Moves, func(r transfer.Move) bool { return follows(r.At, m.At) }) {
				packets += m.Packets
			}
		}
		if float64(packets) < minAligned*float64(c.Packets) {
			return false
		}
	}
	return float64(packets) >= max(1, minMoved*float64(l.Segments)/maxMerged)
}

// follow reports whether the retransmissions follow a counter's moves.
func (l Lost) follow(c *transfer.DropCounter) bool {
	if l.Moves == nil || c.Moves == nil {
		return true
	}
	followed := int64(0)
	all := int64(0)
	for _, r := range l.Moves {
		all += r.Packets
		if slices.ContainsFunc(c.Moves, func(m transfer.Move) bool { return follows(r.At, m.At) }) {
			followed += r.Packets
		}
	}
	return float64(followed) >= minAligned*float64(all)
}

func follows(retransmitted, dropped time.Duration) bool {
	since := retransmitted - dropped
	return since >= -clockError && since <= maxAge+clockError
}

// fit returns how many of the lost segments a counter explains, and whether its number fits them.
func (l Lost) fit(c *transfer.DropCounter, sender bool) (segments int64, exact, ok bool) {
	segments = c.Packets
	if c.Bytes > 0 && l.MSS > 0 {
		segments = (c.Bytes - c.Packets*l.Headers + l.MSS/2) / l.MSS
	}
	low := (1-maxDifference)*float64(l.Segments) - minDifference
	high := (1+maxDifference)*float64(l.Segments) + minDifference
	n := float64(segments)
	exact = n >= low && n <= high
	if exact {
		return min(segments, l.Segments), true, true
	}
	if sender {
		high = max(high, maxRefused*float64(l.Segments))
	}
	if c.Merged && c.Bytes == 0 {
		low = float64(l.Segments) / maxMerged
		segments = l.Segments
	}
	ok = n >= low && n <= high
	return min(segments, l.Segments), false, ok
}
