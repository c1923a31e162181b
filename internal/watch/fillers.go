package watch

import (
	"net/netip"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
	"github.com/fullpipe-net/fullpipe/internal/verdict/threshold"
)

// Filler is another connection of this host that fills the queue in which requests wait.
type Filler struct {
	*Connection
	Direction transfer.Direction
	Queue     time.Duration // of the requests, a round trip
}

// followsNeighbours reports whether connections with other ends than the requested ones are followed as well: they
// may fill a queue.
func (c *Config) followsNeighbours() bool {
	return c.Cumulative && c.Segments != nil && len(c.Match.Ports)+len(c.Match.Hosts) > 0
}

// addNeighbours keeps the connections that do not match and may fill a queue of those that do.
func (v *View) addNeighbours(others []*Connection, a *Tracker, owner func(*Connection) Owner) {
	to := map[netip.Addr]bool{}
	for i := range v.Connections {
		to[v.Connections[i].Remote.Addr()] = true
	}
	for _, c := range others {
		if !to[c.Remote.Addr()] {
			continue
		}
		o := Observed{Connection: c}
		for _, d := range []transfer.Direction{transfer.Up, transfer.Down} {
			if f := a.flow(c, d); f.Bytes >= threshold.FillerBytes {
				o.Flows = append(o.Flows, f)
			}
		}
		if len(o.Flows) > 0 {
			c.Owner = owner(c)
			v.neighbours = append(v.neighbours, o)
		}
	}
}

// nameFillers finds, for each connection with requests that wait in a queue, the connection to the same host that fills
// it. It names none where it is not the only one that can.
func (v *View) nameFillers() {
	paths := map[netip.Addr][]*Observed{}
	for _, all := range [][]Observed{v.Connections, v.neighbours} {
		for i := range all {
			to := all[i].Remote.Addr()
			paths[to] = append(paths[to], &all[i])
		}
	}
	for _, path := range paths {
		if len(path) < 2 {
			continue
		}
		base := leastTrip(path)
		for _, s := range path {
			if s.hasRequests() {
				s.Filler = fillerOf(s, path, base)
			}
		}
	}
}

// minTurns is the least number of turns that make requests of a connection.
const minTurns = 5

// hasRequests reports whether the connection has turns and is no bulk transfer.
func (s *Observed) hasRequests() bool {
	if s.Turns != nil {
		return s.Turns.Count >= minTurns && s.Turns.Bulky == 0
	}
	return s.Requests.Turns >= minTurns
}

// leastTrip returns the least round trip of all connections on a path, 0: not known.
func leastTrip(path []*Observed) (least time.Duration) {
	for _, s := range path {
		if trip := s.Sample.MinRTT; trip > 0 && (least == 0 || trip < least) {
			least = trip
		}
	}
	return least
}

// queueDelay returns by how much a round trip exceeds that of the empty path, 0 where that is no queue.
func queueDelay(rtt, base time.Duration) time.Duration {
	if base == 0 || rtt.Seconds() < threshold.QueuedRTT*base.Seconds() || rtt-base < threshold.FilledQueue {
		return 0
	}
	return rtt - base
}

// fillerOf returns what fills the queue in which a connection waits: one connection with most of the payload of all on
// the path in its direction that no program and no window limits. It is nil where another one, or the other
// direction, may be it as well.
func fillerOf(s *Observed, path []*Observed, base time.Duration) *Filler {
	queue := queueDelay(s.Sample.RTT, base)
	if queue == 0 {
		return nil
	}
	var found *Filler
	for _, d := range []transfer.Direction{transfer.Up, transfer.Down} {
		var sum int64
		var most *Observed
		var bytes int64
		for _, o := range path {
			f := o.flow(d)
			if f == nil {
				continue
			}
			sum += f.Bytes
			if f.Bytes > bytes {
				most = o
				bytes = f.Bytes
			}
		}
		if most == nil || bytes < threshold.FillerBytes || most == s || !most.mayFill(d, base, queue) {
			continue
		}
		if found != nil || float64(bytes) < threshold.FillerShare*float64(sum) {
			return nil
		}
		found = &Filler{Connection: most.Connection, Direction: d, Queue: queue}
		if d == transfer.Up { // a round trip of requests may contain the peer's thinking
			found.Queue = min(queue, queueDelay(most.Sample.RTT, base))
		}
	}
	return found
}

// mayFill reports whether a direction may fill a queue: neither a program nor a window limits it, and its own segments
// wait in that queue where this end can see it.
func (s *Observed) mayFill(d transfer.Direction, base, queue time.Duration) bool {
	f := s.flow(d)
	if d == transfer.Up && float64(queueDelay(s.Sample.RTT, base)) < threshold.SameQueue*float64(queue) {
		return false
	}
	switch f.Verdict.Limiter {
	case verdict.Bottleneck, verdict.Congestion, verdict.LocalQueue, verdict.SlowStart:
		return true
	case verdict.Unknown, verdict.Mixed: // only a sender sees its own wait in the queue
		return d == transfer.Up
	}
	return false
}
