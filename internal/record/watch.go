package record

import (
	"cmp"
	"slices"

	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
	"github.com/fullpipe-net/fullpipe/internal/watch"
)

// Watch is what limited this host's connections in a span of time: one period of `watch`,
// or all of it where a length was asked for, or what `why` saw of its target.
type Watch struct {
	Header
	Target  string  `json:"target,omitempty"` // of `why`
	AtS     float64 `json:"at_s"`             // when the span ended, since the watch began
	LengthS float64 `json:"length_s"`
	// Standing counts the connections that stand and are followed, Matching those of the
	// span that fit what was asked for, idle ones included.
	Standing int         `json:"standing"`
	Matching int         `json:"matching"`
	Totals   WatchTotals `json:"totals"`
	// Limited sums the matching connections by limiter, the one of most bytes first.
	Limited     []WatchLimited      `json:"limited"`
	Connections []WatchedConnection `json:"connections"`
	// LeftOut counts lighter connections that moved payload and are not listed.
	LeftOut int `json:"left_out,omitempty"`
	// LostEnds counts ends that the kernel could not tell us for want of room.
	LostEnds    int64    `json:"lost_ends"`
	DumpS       float64  `json:"dump_s"`
	Unread      []string `json:"unread,omitempty"`
	Interrupted bool     `json:"interrupted,omitempty"`
}

// WatchTotals count since the watch began, over every connection that is followed.
type WatchTotals struct {
	SentBytes          int64 `json:"sent_bytes"`
	ReceivedBytes      int64 `json:"received_bytes"`
	RetransmittedBytes int64 `json:"retransmitted_bytes"`
	Opened             int64 `json:"opened"`
	Closed             int64 `json:"closed"`
	Unfinished         int64 `json:"unfinished"` // ended without the kernel's last account
}

// WatchLimited is what one limiter held back in one direction.
type WatchLimited struct {
	Limiter     verdict.Name       `json:"limiter"`
	Direction   transfer.Direction `json:"direction"`
	Bytes       int64              `json:"bytes"` // moved by the connections whose headline it is
	LimitedS    float64            `json:"limited_s"`
	Connections int                `json:"connections"`
}

// WatchedConnection is one connection in the span.
type WatchedConnection struct {
	Local      string `json:"local"`
	Remote     string `json:"remote"`
	PID        int    `json:"pid,omitempty"`
	Program    string `json:"program,omitempty"`
	Unit       string `json:"unit,omitempty"`
	Container  string `json:"container,omitempty"`
	Congestion string `json:"congestion,omitempty"`
	// SendBufferBytes and ReceiveBufferBytes are granted ones.
	SendBufferBytes    int64              `json:"send_buffer_bytes,omitempty"`
	ReceiveBufferBytes int64              `json:"receive_buffer_bytes,omitempty"`
	Ended              bool               `json:"ended,omitempty"`
	Directions         []WatchedDirection `json:"directions"` // the heavier first
}

// WatchedDirection is one direction of it.
type WatchedDirection struct {
	Direction          transfer.Direction `json:"direction"`
	Bytes              int64              `json:"bytes"`
	GoodputBps         float64            `json:"goodput_bps"`
	RetransmittedBytes int64              `json:"retransmitted_bytes,omitempty"`
	RTTS               *float64           `json:"rtt_s,omitempty"`
	RTTMinS            *float64           `json:"rtt_min_s,omitempty"`
	// Sampled says that the verdict rests on samples; else on the kernel's cumulative
	// clocks alone.
	Sampled bool `json:"sampled"`
	verdict.Verdict
	Fix []Fix `json:"fix,omitempty"` // what to do about it, in order, or what would tell
}

// mostWatched is how many connections a document lists.
const mostWatched = 100

// NewWatch describes what a span of watching showed.
func NewWatch(h Header, target string, v *watch.View) *Watch {
	t := v.Totals
	w := &Watch{Header: h, Target: target, AtS: v.At.Seconds(), LengthS: v.Length.Seconds(), Standing: v.Standing,
		Matching: v.Matched, LeftOut: v.Lighter, LostEnds: int64(v.Lost), DumpS: v.Took.Seconds(), Unread: v.Unread,
		Limited: []WatchLimited{}, Connections: []WatchedConnection{},
		Totals: WatchTotals{t.Sent, t.Received, t.Retransmitted, t.Opened, t.Closed, t.Unfinished}}
	for i := range v.Seen {
		s := &v.Seen[i]
		w.limit(s, v.Length.Seconds())
		if i >= mostWatched {
			w.LeftOut++
			continue
		}
		c := WatchedConnection{Local: s.Local.String(), Remote: s.Remote.String(), PID: s.Owner.PID, Program: s.Owner.Program,
			Unit: s.Owner.Unit, Container: s.Owner.Container, Congestion: s.Congestion, SendBufferBytes: s.SendBuffer,
			ReceiveBufferBytes: s.ReceiveBuffer, Ended: s.Ended}
		for j := range s.Flows {
			f := &s.Flows[j]
			d := WatchedDirection{Direction: f.Direction, Bytes: f.Bytes, Sampled: f.Sampled, Verdict: f.Verdict,
				GoodputBps: float64(f.Bytes) * 8 / max(v.Length.Seconds(), 1e-9), RetransmittedBytes: max(f.Resent, 0)}
			if f.RTT > 0 {
				d.RTTS = seconds(f.RTT)
			}
			if f.MinRTT > 0 {
				d.RTTMinS = seconds(f.MinRTT)
			}
			d.Fix = NewFixes(f.Verdict, FixFacts{GoodputBps: d.GoodputBps, RTTS: orZero(d.RTTMinS), Congestion: s.Congestion})
			c.Directions = append(c.Directions, d)
		}
		w.Connections = append(w.Connections, c)
	}
	slices.SortFunc(w.Limited, func(a, b WatchLimited) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(b.LimitedS, a.LimitedS), cmp.Compare(a.Limiter, b.Limiter),
			cmp.Compare(a.Direction, b.Direction))
	})
	return w
}

// limit adds a connection's verdicts to the sums.
func (w *Watch) limit(s *watch.Seen, length float64) {
	for i := range s.Flows {
		f := &s.Flows[i]
		for _, name := range f.Verdict.Shares.Top() {
			w.limited(name, f.Direction).LimitedS += f.Verdict.Shares[name] * length
		}
		l := w.limited(f.Verdict.Limiter, f.Direction)
		l.Bytes += f.Bytes
		l.Connections++
	}
}

func (w *Watch) limited(name verdict.Name, d transfer.Direction) *WatchLimited {
	for i := range w.Limited {
		if w.Limited[i].Limiter == name && w.Limited[i].Direction == d {
			return &w.Limited[i]
		}
	}
	w.Limited = append(w.Limited, WatchLimited{Limiter: name, Direction: d})
	return &w.Limited[len(w.Limited)-1]
}
