// Package live judges what was sampled at the ends of a transfer while it ran: by the
// sender, by the receiver alone, or by both.
package live

import (
	"cmp"
	"slices"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// Judge says what limited a measured transfer. It needs the samples of at least one
// end; what the missing end alone could tell stays unknown, with the candidates.
//
// Time is given away in three steps. The sender's own clocks say when it had nothing to
// send, when the peer's window and when its own buffer held it back; a window that was
// full although the path could carry no more does not count. What remains is the
// network's, and is judged over the whole transfer: a full link, loss, a local queue.
//
// What disturbed the measurement at either end makes the verdict less sure, and is told.
func Judge(r *transfer.Result) verdict.Verdict { return lowerConfidence(judge(r, scope{}), r) }

// JudgeSteady says what limited a transfer after slow start, which is what its steady goodput
// counts. Where slow start is not seen to end it says what Judge says.
func JudgeSteady(r *transfer.Result) verdict.Verdict {
	_, settled := r.Startup()
	return lowerConfidence(judge(r, scope{afterSlowStart: settled}), r)
}

// scope says what of a transfer is judged, and from where.
type scope struct {
	afterSlowStart bool // after slow start
	isWatched      bool // one watched connection: its program is not ours, and samples are rare
	lossBefore     bool // it had sent something again before it was watched
}

func judge(r *transfer.Result, as scope) verdict.Verdict {
	switch {
	case isSampled(r.Sender()) && minRTTOf(r.Sender()) > 0:
		return judgeSender(r, as)
	case isSampled(r.Receiver()):
		return judgeArrivals(r, judgeReceiver(r))
	case isSampled(r.Sender()):
		return verdict.Unobserved(verdict.Evidence{Code: verdict.NoRoundTrips}, unobservedCandidates...)
	}
	return verdict.Unobserved(verdict.Evidence{Code: verdict.NotSampled}, unobservedCandidates...)
}

// unobservedCandidates are the limiters that remain where nothing was seen of any.
var unobservedCandidates = []verdict.Name{verdict.Application, verdict.SendBuffer, verdict.ReceiverWindow,
	verdict.Congestion, verdict.Bottleneck}

func isSampled(e *transfer.End) bool {
	if e == nil {
		return false
	}
	for i := range e.Streams {
		if _, samples := during(&e.Streams[i]); len(samples) > 0 {
			return true
		}
	}
	return false
}

// analysis is one transfer while it is judged: its connections, its path and the time that
// each limiter has been given so far.
type analysis struct {
	result        *transfer.Result
	sender        *transfer.End
	receiver      *transfer.End // nil: cannot be seen
	connections   []*connection
	path          *path
	measured      networkFacts
	cache         cache
	network       finding // what limits while the network decides
	time          map[verdict.Name]time.Duration
	total         time.Duration
	unknownTime   map[verdict.Code]time.Duration // of Unknown's, by what is seen of it
	slowStartTime time.Duration                  // of SlowStart's: before slow start ended
	equalTime     time.Duration                  // in which send buffer and receive window held back alike
}

// judgeSender judges by the least round trip that was seen, and where the verdict does not
// agree with its own figures, once more by one that several samples support: what a kernel
// holds for the least may be one packet's luck.
func judgeSender(r *transfer.Result, as scope) verdict.Verdict {
	least := minRTTOf(r.Sender())
	v, figures := analyse(r, least, as)
	wrong := verdict.Check(v, figures)
	if len(wrong) == 0 {
		return v
	}
	if supported := supportedRTT(r.Sender()); supported > least {
		again, figures := analyse(r, supported, as)
		if len(verdict.Check(again, figures)) == 0 {
			return verdict.Rejudged(again, wrong[0])
		}
	}
	return verdict.Contradicted(v, wrong[0])
}

// newAnalysis judges the network of a transfer that was sampled at its sender.
func newAnalysis(r *transfer.Result, minRTT time.Duration, as scope) *analysis {
	a := &analysis{result: r, sender: r.Sender(), receiver: r.Receiver(), time: map[verdict.Name]time.Duration{},
		unknownTime: map[verdict.Code]time.Duration{}}
	for i := range a.sender.Streams {
		if c := newConnection(r, i, minRTT); len(c.rounds) > 0 {
			c.isWatched = as.isWatched
			c.lossBefore = as.lossBefore
			a.connections = append(a.connections, c)
		}
	}
	a.path = newPath(minRTT, a.connections)
	if as.isWatched {
		a.path.addWatched(a.connections)
	}
	a.measured = a.networkFacts()
	a.judgeNetwork()
	return a
}

func analyse(r *transfer.Result, minRTT time.Duration, as scope) (verdict.Verdict, verdict.Figures) {
	a := newAnalysis(r, minRTT, as)
	for _, c := range a.connections {
		for i := range c.rounds {
			a.attribute(c, &c.rounds[i])
		}
	}
	a.leaveOpenBetweenClosings()
	if as.afterSlowStart && a.slowStartTime < a.total {
		a.time[verdict.SlowStart] -= a.slowStartTime
		a.total -= a.slowStartTime
	}
	return a.conclude(), a.figures()
}

// attribute gives a round's time to limiters, by the rules in their order.
func (a *analysis) attribute(c *connection, r *round) {
	f := facts{a, c, r}
	left := r.length
	for i := range timeRules {
		rule := &timeRules[i]
		if left <= 0 {
			break
		}
		if !rule.when.IsTrue(f) {
			continue
		}
		taken := min(max(rule.claims.of(f), 0), left)
		left -= taken
		if other := c.equalLimit(r, rule.limiter); other != "" {
			a.equalTime += taken
			a.time[other] += taken / 2
			taken -= taken / 2
		}
		a.time[rule.limiter] += taken
		switch rule.limiter {
		case verdict.Unknown:
			a.unknownTime[rule.code] += taken
		case verdict.SlowStart:
			a.slowStartTime += taken
		}
	}
	a.time[a.remainder(f)] += left
	a.total += r.length
}

// remainder returns the limiter of the time in a round that no rule claimed.
func (a *analysis) remainder(f facts) verdict.Name {
	i := slices.IndexFunc(remainderRules, func(r timeRule) bool { return r.when.IsTrue(f) })
	return cmp.Or(remainderRules[i].limiter, a.network.name)
}

func (a *analysis) shares() verdict.Shares {
	shares := verdict.Shares{}
	for name, d := range a.time {
		if d > 0 {
			shares[name] = float64(d) / float64(a.total)
		}
	}
	return shares
}
