package report

import (
	"cmp"

	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/turns"
	"github.com/fullpipe-net/fullpipe/internal/verdict/live"
	"github.com/fullpipe-net/fullpipe/internal/watch"
)

// minTurnsSampled is the least number of turns that make requests of a connection.
const minTurnsSampled = 5

// requestsOf returns the requests of a connection in a time; nil: it has none.
func requestsOf(s *watch.Observed, length float64) *record.WatchedRequests {
	switch {
	case s.Turns != nil && s.Turns.Count > 0:
		r := followedRequests([]watch.Observed{*s}, length)
		r.Turns.Slowest = []record.SlowestTurn{}
		r.Turns.Distribution = nil
		return r
	case s.Turns == nil && s.Requests.Turns >= minTurnsSampled:
		r := sampledRequests(&s.Requests)
		r.QueueFilledBy = queueFiller(s)
		return r
	}
	return nil
}

// queueFiller returns the connection that fills the queue in which requests wait; nil: none is known.
func queueFiller(s *watch.Observed) *record.QueueFiller {
	f := s.Filler
	if f == nil {
		return nil
	}
	return &record.QueueFiller{PID: f.Owner.PID, Program: cmp.Or(f.Owner.Script, f.Owner.Program), Unit: f.Owner.Unit,
		Container: f.Owner.Container, Local: f.Local.String(), Remote: f.Remote.String(), Direction: f.Direction,
		QueueS: f.Queue.Seconds()}
}

// allRequests returns the requests of the connections together; nil: there are none.
func allRequests(v *watch.View, connections []watch.Observed) *record.WatchedRequests {
	var sum live.Requests
	var perSecond float64
	var filler *record.QueueFiller
	for i := range connections {
		s := &connections[i]
		if s.Turns != nil && s.Turns.Count > 0 {
			all := followedRequests(connections, v.Length.Seconds())
			all.Missed = v.Segments.Missed
			all.FollowedOneOf = v.Segments.OneOf
			return all
		}
		if r := requestsOf(s, 1); r != nil {
			sum.Add(&s.Requests)
			perSecond += r.TurnsPerS
			filler = longerQueue(filler, r.QueueFilledBy)
		}
	}
	if sum.Turns == 0 {
		return nil
	}
	all := sampledRequests(&sum)
	all.TurnsPerS = perSecond
	all.QueueFilledBy = filler
	return all
}

// longerQueue returns the filler of the longer queue.
func longerQueue(a, b *record.QueueFiller) *record.QueueFiller {
	if a == nil || b != nil && b.QueueS > a.QueueS {
		return b
	}
	return a
}

// followedRequests returns the requests of connections by their segments.
func followedRequests(connections []watch.Observed, length float64) *record.WatchedRequests {
	r := &record.WatchedRequests{}
	var all []*turns.Summary
	var clients []string
	roles := map[string]bool{}
	emptyPath := int64(0) // round trip, where a filled queue is known
	for i := range connections {
		s := &connections[i]
		if s.Turns == nil {
			continue
		}
		all = append(all, &s.Turns.Summary)
		here := 0 // of Stalled
		role := "server"
		client := s.Remote
		if s.Turns.Client {
			here = 1
			role = "client"
			client = s.Local
		}
		clients = append(clients, client.String())
		roles[role] = true
		if f := longerQueue(r.QueueFilledBy, queueFiller(s)); f != r.QueueFilledBy {
			r.QueueFilledBy = f
			emptyPath = int64(s.Sample.RTT - s.Filler.Queue)
		}
		r.Role = role
		for cause := turns.LostSYN; cause <= turns.Timeout; cause++ {
			r.StalledHere += s.Turns.Stalled[cause][here].Count
			r.StalledByPeer += s.Turns.Stalled[cause][1-here].Count
		}
	}
	if len(roles) > 1 {
		r.Role = ""
	}
	profile := turns.ProfileOf(all...)
	if f := r.QueueFilledBy; f != nil && r.Role == "client" {
		f.QueueS = float64(waitInQueue(&profile, int64(f.QueueS*1e9), emptyPath)) / 1e9
	}
	r.Requests = record.RequestsOf(&profile)
	r.TurnsPerS = float64(profile.Count) / max(length, 1e-9)
	for i := range r.Turns.Slowest {
		r.Turns.Slowest[i].Client = clients[profile.Longest[i].Connection]
	}
	return r
}

// waitInQueue gives a part of the round trip, above that of the empty path, and of the time between requests and
// responses to a queue: segments at the client's side do not separate them. It returns that part of the median.
func waitInQueue(p *turns.Profile, queue, emptyPath int64) int64 {
	wait := func(t *turns.Times) int64 {
		longer := max(t[turns.Request][turns.Propagation]+t[turns.Response][turns.Propagation]-emptyPath, 0)
		waited := min(queue, longer, t[turns.Request][turns.Propagation])
		t[turns.Request][turns.Propagation] -= waited
		server := min(queue-waited, t[turns.Thinking][turns.Server])
		t[turns.Thinking][turns.Server] -= server
		t[turns.Request][turns.Queue] += waited + server
		return waited + server
	}
	wait(&p.Slowest)
	for i := range p.Longest {
		wait(&p.Longest[i].Time)
	}
	return wait(&p.Median)
}

func sampledRequests(r *live.Requests) *record.WatchedRequests {
	return &record.WatchedRequests{TurnsPerS: float64(r.Turns) / max(r.Span.Seconds(), 1e-9),
		Sampled: &record.SampledRequests{SpanS: r.Span.Seconds(), TimerS: r.Timer.Seconds(),
			ZeroWindowS: r.ZeroWindow.Seconds(), InFlightS: r.InFlight.Seconds(), PeerS: r.Peer.Seconds(),
			ProgramS: r.Program.Seconds(), Timers: r.Timers, LongestTimerS: r.LongestTimer.Seconds()}}
}
