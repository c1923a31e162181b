package report

import (
	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/verdict/live"
	"github.com/fullpipe-net/fullpipe/internal/watch"
)

// minTurnsSampled is the least number of turns that make requests of a connection.
const minTurnsSampled = 5

// requestsOf returns the requests of a connection; nil: it has none.
func requestsOf(s *watch.Observed) *record.WatchedRequests {
	if s.Requests.Turns < minTurnsSampled {
		return nil
	}
	return sampledRequests(&s.Requests)
}

// allRequests returns the requests of the connections together.
func allRequests(connections []watch.Observed) *record.WatchedRequests {
	var sum live.Requests
	var perSecond float64
	for i := range connections {
		r := requestsOf(&connections[i])
		if r == nil {
			continue
		}
		sum.Add(&connections[i].Requests)
		perSecond += r.TurnsPerS
	}
	if sum.Turns == 0 {
		return nil
	}
	all := sampledRequests(&sum)
	all.TurnsPerS = perSecond
	return all
}

func sampledRequests(r *live.Requests) *record.WatchedRequests {
	return &record.WatchedRequests{TurnsPerS: float64(r.Turns) / max(r.Span.Seconds(), 1e-9),
		Sampled: &record.SampledRequests{SpanS: r.Span.Seconds(), TimerS: r.Timer.Seconds(),
			ZeroWindowS: r.ZeroWindow.Seconds(), InFlightS: r.InFlight.Seconds(), PeerS: r.Peer.Seconds(),
			ProgramS: r.Program.Seconds(), Timers: r.Timers, LongestTimerS: r.LongestTimer.Seconds()}}
}
