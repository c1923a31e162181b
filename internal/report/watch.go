package report

import (
	"cmp"
	"runtime"
	"slices"

	"github.com/fullpipe-net/fullpipe/internal/advice"
	"github.com/fullpipe-net/fullpipe/internal/catalog"
	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/record/guard"
	"github.com/fullpipe-net/fullpipe/internal/render/text"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/units"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
	"github.com/fullpipe-net/fullpipe/internal/watch"
)

// mostWatched is the maximum number of connections in a document.
const mostWatched = 100

// Watch returns the document of a span of watching. It copies, because a watched connection has addresses and kernel
// counters, while the document has texts, and keys that are absent when the value is unknown.
func Watch(h record.Header, target string, v *watch.View) *record.Watch {
	t := v.Totals
	system := advice.SystemOf(runtime.GOOS)
	w := &record.Watch{Header: h, Target: target, Anonymized: v.Anonymized,
		AtS: v.At.Seconds(), LengthS: v.Length.Seconds(), Standing: v.Standing,
		Matching: max(v.Matched, len(v.Connections)+v.Lighter),
		LeftOut:  v.Lighter, LostEnds: int64(v.Lost), DumpS: v.Took.Seconds(), Unread: text.Notes(v.Unread),
		Limited: []record.WatchLimited{}, Connections: []record.WatchedConnection{},
		Totals: record.WatchTotals{SentBytes: t.Sent, ReceivedBytes: t.Received, RetransmittedBytes: t.Retransmitted,
			Opened: t.Opened, Closed: t.Closed, Unfinished: t.Unfinished}}
	connections := v.Connections
	if target != "" {
		connections = leading(v)
	}
	w.Requests = allRequests(v, connections)
	for i := range connections {
		s := &connections[i]
		length := v.Span(s).Seconds()
		limit(w, s, length)
		if i >= mostWatched {
			w.LeftOut++
			continue
		}
		c := record.WatchedConnection{Local: s.Local.String(), Remote: s.Remote.String(), PID: s.Owner.PID,
			Program: s.Owner.Program, Script: s.Owner.Script, Unit: s.Owner.Unit, Container: s.Owner.Container,
			Congestion: s.Congestion, SendBufferBytes: s.SendBuffer,
			ReceiveBufferBytes: s.ReceiveBuffer, Ended: s.Ended,
			FollowedS: max(v.At-s.FirstSeen, 0).Seconds(), Requests: requestsOf(s, length)}
		if parent := s.Owner.Ancestor; parent != nil {
			c.ParentPID = parent.PID
			c.ParentProgram = cmp.Or(parent.Script, parent.Program)
		}
		for j := range s.Flows {
			f := &s.Flows[j]
			d := record.WatchedDirection{Direction: f.Direction, Bytes: f.Bytes, Sampled: f.Sampled, Verdict: f.Verdict,
				GoodputBps: float64(f.Bytes) * 8 / max(length, 1e-9), RetransmittedBytes: max(f.RetransmittedBytes, 0),
				RTT: units.Duration(f.RTT), RTTMin: units.Duration(f.MinRTT), InFlightBytes: f.InFlight,
				OfferedBytes: f.Offered}
			facts := advice.Facts{GoodputBps: d.GoodputBps, RTTS: d.RTTMin.Seconds(), Congestion: s.Congestion}
			if f.Direction == transfer.Up {
				facts.Sender = system
				facts.SendBufferMax = int(s.SendBufferMax)
				facts.Unscaled = s.Handshake != nil && s.Handshake.SendScale < 0
			} else {
				facts.Receiver = system
				facts.ReceiveBufferMax = int(s.ReceiveBufferMax)
				facts.Unscaled = s.Handshake != nil && s.Handshake.ReceiveScale < 0
			}
			d.Fix = advice.Fixes(f.Verdict, facts)
			if f.Losses != nil {
				losses := Losses{Receiver: f.Losses}
				if f.Direction == transfer.Up {
					losses = Losses{Sender: f.Losses}
				}
				d.LostAt = losses.LostAt()
			}
			guard.Watched(&d)
			d.Evidence = text.EvidenceSentences(d.Evidence)
			d.Fix = text.FixSentences(d.Fix)
			d.Waits, d.Fix = ofProgram(f.Waits, d.Verdict, d.GoodputBps, d.Fix)
			ports := append([]uint16{s.Local.Port(), s.Remote.Port()}, catalog.PortsOf(s.Owner.Program)...)
			d.Program = record.NewProgramWindow(f.Verdict, ports...)
			if f.Leg != nil {
				d.Leg = &record.WatchedLeg{Local: f.Leg.Local.String(), Remote: f.Leg.Remote.String(),
					Direction: f.Leg.Direction, Others: f.Leg.Others, Role: f.Leg.Role}
			}
			c.Directions = append(c.Directions, d)
		}
		w.Connections = append(w.Connections, c)
	}
	for i := range v.Shifts {
		w.PathChanges = append(w.PathChanges, PathShifts(&v.Shifts[i])...)
	}
	slices.SortFunc(w.Limited, func(a, b record.WatchLimited) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(b.LimitedS, a.LimitedS), cmp.Compare(a.Limiter, b.Limiter),
			cmp.Compare(a.Direction, b.Direction))
	})
	return w
}

// leading returns the view's connections, the one that limits the heaviest flow first, and of it
// that flow.
func leading(v *watch.View) []watch.Observed {
	first, flow := v.Limiting()
	if len(v.Connections) == 0 || first == 0 && flow == 0 {
		return v.Connections
	}
	c := v.Connections[first]
	c.Flows = slices.Clone(c.Flows)
	c.Flows[0], c.Flows[flow] = c.Flows[flow], c.Flows[0]
	all := []watch.Observed{c}
	return append(append(all, v.Connections[:first]...), v.Connections[first+1:]...)
}

// limit adds a connection's verdicts to the sums.
func limit(w *record.Watch, s *watch.Observed, length float64) {
	for i := range s.Flows {
		f := &s.Flows[i]
		for _, name := range f.Verdict.Shares.Top() {
			limited(w, name, f.Direction).LimitedS += f.Verdict.Shares[name] * length
		}
		l := limited(w, f.Verdict.Limiter, f.Direction)
		l.Bytes += f.Bytes
		l.Connections++
	}
}

func limited(w *record.Watch, name verdict.Name, d transfer.Direction) *record.WatchLimited {
	for i := range w.Limited {
		if w.Limited[i].Limiter == name && w.Limited[i].Direction == d {
			return &w.Limited[i]
		}
	}
	w.Limited = append(w.Limited, record.WatchLimited{Limiter: name, Direction: d})
	return &w.Limited[len(w.Limited)-1]
}
