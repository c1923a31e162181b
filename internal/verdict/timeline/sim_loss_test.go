package timeline

import (
	"slices"

	"github.com/fullpipe-net/fullpipe/internal/flow"
)

// drops is where a simulated path drops segments. The zero value drops none.
type drops struct {
	lose      func() bool // loses a segment behind the line
	queue     int         // segments that wait for the line at most; 0: any number
	policeBps float64     // a policer's rate; 0: none
	bucket    float64     // of it, bytes
	filled    float64
	filledAt  int64
	queueEnds []int64 // when each waiting segment leaves the line
	noDupACKs bool    // the receiver acknowledges no segment out of order
	noSACK    bool
	ssthresh  int // of the sender at its start, segments; 0: none
}

// any reports whether a path drops segments at all.
func (d *drops) any() bool { return d.lose != nil || d.queue > 0 || d.policeBps > 0 }

// drop reports whether the path drops a segment that leaves the sender.
func (d *drops) drop(now int64, size float64) bool {
	if d.policeBps > 0 {
		d.filled = min(d.bucket, d.filled+float64(now-d.filledAt)*d.policeBps/8e9)
		d.filledAt = now
		if d.filled < size {
			return true
		}
		d.filled -= size
	}
	d.queueEnds = slices.DeleteFunc(d.queueEnds, func(end int64) bool { return end <= now })
	return d.queue > 0 && len(d.queueEnds) > d.queue || d.lose != nil && d.lose()
}

// flight is a segment that the sender has not seen acknowledged.
type flight struct {
	pos, length         int
	sacked, lost, again bool
}

// reno is a sender with SACK (RFC 6675), NewReno (RFC 6582) and a retransmission timer (RFC 6298).
type reno struct {
	flights  []flight
	ssthresh int
	recover  int // recovery ends when as much is acknowledged
	dupACKs  int
	backoff  int64
	timer    int
}

// pipe returns the bytes that are on their way.
func (s *sim) pipe() (sum int) {
	r := &s.reno
	if !s.drops.any() {
		return s.sent - s.acked
	}
	for i := range r.flights {
		if f := &r.flights[i]; !f.sacked && (!f.lost || f.again) {
			sum += f.length
		}
	}
	return sum
}

// acknowledged removes what is acknowledged, and marks what is known to be lost. It reports whether a recovery begins.
func (r *reno) acknowledged(s *sim, pos int, blocks [][2]int) (begins bool) {
	if pos > s.acked {
		r.flights = slices.DeleteFunc(r.flights, func(f flight) bool { return f.pos+f.length <= pos })
		r.dupACKs = 0
		r.backoff = 0
	} else if len(r.flights) > 0 {
		r.dupACKs++
	}
	beyond := 0
	for i := len(r.flights) - 1; i >= 0; i-- {
		f := &r.flights[i]
		for _, b := range blocks {
			f.sacked = f.sacked || f.pos >= b[0] && f.pos+f.length <= b[1]
		}
		if f.sacked {
			beyond++
		} else if beyond >= 3 {
			begins = begins || !f.lost
			f.lost = true
		}
	}
	if len(r.flights) > 0 && !r.flights[0].lost && (r.dupACKs >= 3 || pos > s.acked && pos < r.recover) {
		r.flights[0].lost = true
		begins = true
	}
	return begins && max(pos, s.acked) >= r.recover
}

// reduce sets the windows after a loss.
func (r *reno) reduce(s *sim) {
	r.ssthresh = max(s.pipe()/2, 2*s.mss())
	s.cwnd = r.ssthresh
	r.recover = s.sent
}

// grow opens the congestion window (RFC 5681, 3.1).
func (r *reno) grow(s *sim, acked int) {
	switch {
	case r.ssthresh == 0 || s.cwnd < r.ssthresh:
		s.cwnd += acked
	default:
		s.cwnd += max(s.mss()*min(acked, s.cwnd)/s.cwnd, 1)
	}
}

// arm restarts the retransmission timer.
func (r *reno) arm(s *sim) {
	if !s.drops.any() {
		return
	}
	r.timer++
	mine := r.timer
	rto := max(200*ms, 2*s.rtt+min(int64(float64(s.cwnd)*8e9/s.bps), s.rtt)) << r.backoff
	s.at(s.now+rto, func() {
		if mine != r.timer || len(r.flights) == 0 {
			return
		}
		for i := range r.flights {
			r.flights[i].lost = !r.flights[i].sacked
			r.flights[i].again = false
		}
		if r.backoff == 0 {
			r.ssthresh = max(min(s.cwnd, s.sent-s.acked)/2, 2*s.mss())
		}
		s.cwnd = s.mss()
		r.recover = s.sent
		r.dupACKs = 0
		r.backoff = min(r.backoff+1, 6)
		s.send()
		r.arm(s)
	})
}

// resend retransmits what is lost, as far as the congestion window permits.
func (r *reno) resend(s *sim) {
	if !s.drops.any() {
		return
	}
	for i := range r.flights {
		f := &r.flights[i]
		if f.lost && !f.again && !f.sacked && s.pipe()+f.length <= max(s.cwnd, s.mss()) {
			f.again = true
			s.put(f.pos, f.length)
		}
	}
}

// received are the bytes that arrived beyond a gap.
type received struct{ blocks [][2]int }

// add adds a segment and returns the position up to which all arrived.
func (r *received) add(upTo, pos, length int) int {
	if pos+length > upTo {
		r.blocks = append(r.blocks, [2]int{max(pos, upTo), pos + length})
	}
	slices.SortFunc(r.blocks, func(a, b [2]int) int { return a[0] - b[0] })
	merged := r.blocks[:0]
	for _, b := range r.blocks {
		if n := len(merged); n > 0 && b[0] <= merged[n-1][1] {
			merged[n-1][1] = max(merged[n-1][1], b[1])
			continue
		}
		merged = append(merged, b)
	}
	if len(merged) > 0 && merged[0][0] <= upTo {
		upTo = max(upTo, merged[0][1])
		merged = merged[1:]
	}
	r.blocks = slices.Clone(merged)
	return upTo
}

// sack writes the blocks that contain the last segment and two others into an acknowledgement.
func (r *received) sack(one *flow.Segment, last int) (reported [][2]int) {
	for _, b := range r.blocks {
		if last >= b[0] && last < b[1] {
			reported = append(reported, b)
		}
	}
	for i := len(r.blocks) - 1; i >= 0 && len(reported) < 3; i-- {
		if !slices.Contains(reported, r.blocks[i]) {
			reported = append(reported, r.blocks[i])
		}
	}
	for i, b := range reported {
		one.SACK[i] = [2]uint32{1000 + uint32(b[0]), 1000 + uint32(b[1])}
	}
	one.SACKs = uint8(len(reported))
	return reported
}
