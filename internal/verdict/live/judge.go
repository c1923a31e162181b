// Package live judges a transfer by the samples of its sender, its receiver, or both.
//
// Flow of a judgement; the rules are lists in *_rules.go:
//
//  1. judge chooses the vantage: judgeSender, or judgeReceiver and judgeArrivals where the sender was not sampled.
//  2. newConnection (connection.go) cuts each connection into rounds and differences the counters over them.
//  3. newPath (path.go) measures RTTs, rates, losses and evenness of all connections together.
//  4. judgeNetwork (network_rules.go) names the limiter of time that neither end explains.
//  5. attribute (time_rules.go) gives each round's time to limiters, rule by rule; remainder gives the rest.
//  6. conclude makes the verdict of the shares, with evidence.go and confidence.go.
//  7. verdict.Check compares the verdict with its own figures; judgeSender tries again with another least RTT.
//  8. lowerConfidence (disturbed.go) adds disturbances of the measurement.
package live

import (
	"cmp"
	"slices"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// Judge returns what limited a measured transfer. It needs the samples of at least one end; limiters that only the
// missing end could show remain candidates.
//
// Disturbances at either end lower the confidence and appear in the evidence.
func Judge(r *transfer.Result) verdict.Verdict { return lowerConfidence(judge(r, scope{}), r) }

// JudgeSteady returns what limited a transfer after slow start, the time of its steady goodput. If slow start does not
// end, it returns the verdict of Judge.
func JudgeSteady(r *transfer.Result) verdict.Verdict {
	_, settled := r.Startup()
	return lowerConfidence(judge(r, scope{afterSlowStart: settled}), r)
}

// scope is the part of a transfer that is judged, and the vantage.
type scope struct {
	afterSlowStart bool          // after slow start
	watched        *watchedFacts // of a watched connection: its program is not ours, and samples are rare; else nil
}

func judge(r *transfer.Result, as scope) verdict.Verdict {
	switch {
	case isSampled(r.Sender()) && minRTTOf(r.Sender()) > 0:
		return judgeSender(r, as)
	case isSampled(r.Receiver()):
		return judgeArrivals(r, judgeReceiver(r, as))
	case isSampled(r.Sender()):
		return verdict.Unobserved(verdict.Evidence{Code: verdict.NoRoundTrips}, unobservedCandidates...)
	}
	return verdict.Unobserved(verdict.Evidence{Code: verdict.NotSampled}, unobservedCandidates...)
}

// unobservedCandidates are the candidates of a transfer without samples.
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
	watched       *watchedFacts // nil: the program is ours
	sender        *transfer.End
	receiver      *transfer.End // nil: cannot be seen
	connections   []*connection
	path          *path
	measured      networkFacts
	cache         cache
	network       finding // the limiter while the network limits
	time          map[verdict.Name]time.Duration
	total         time.Duration                  // of all rounds
	headline      verdict.Verdict                // for its confidence
	judged        time.Duration                  // total, or its part after slow start
	unknownTime   map[verdict.Code]time.Duration // of Unknown's, by observation
	slowStartTime time.Duration                  // of SlowStart's: before slow start ended
	sentTime      map[verdict.Name]time.Duration // of the limiters', while all that was written was on its way
	equalTime     time.Duration                  // in which send buffer and receive window limited equally
	// linkTime is Bottleneck's by remainderRules, and linkBits what a connection delivered in it.
	linkTime time.Duration
	linkBits float64
}

// judgeSender judges with the kernel's min RTT. If the figures contradict the verdict, it judges again with a least RTT
// that several samples support: the min RTT may be an outlier.
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
	a := &analysis{result: r, watched: as.watched, sender: r.Sender(), receiver: r.Receiver(),
		time:        map[verdict.Name]time.Duration{},
		unknownTime: map[verdict.Code]time.Duration{}}
	for i := range a.sender.Streams {
		if c := newConnection(r, i, minRTT); len(c.rounds) > 0 {
			a.connections = append(a.connections, c)
		}
	}
	a.path = newPath(minRTT, a.connections)
	if as.watched != nil {
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
	a.judged = a.total
	a.leaveOpenBetweenClosings()
	if as.afterSlowStart && a.slowStartTime < a.total {
		a.time[verdict.SlowStart] -= a.slowStartTime
		a.judged -= a.slowStartTime
	}
	return a.conclude(), a.figures()
}

// attribute gives a round's time to limiters, rule by rule.
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
		switch {
		case rule.limiter == verdict.Unknown:
			a.unknownTime[rule.code] += taken
		case rule.limiter == verdict.SlowStart:
			a.slowStartTime += taken
		case rule.code == verdict.ProgramOrBuffer:
			if a.sentTime == nil {
				a.sentTime = map[verdict.Name]time.Duration{}
			}
			a.sentTime[rule.limiter] += taken
		}
	}
	rule := remainder(f)
	limiter := cmp.Or(rule.limiter, a.network.name)
	switch {
	case limiter == verdict.Bottleneck:
		a.linkTime += left
		a.linkBits += r.bps * left.Seconds()
	case rule.code != "":
		a.unknownTime[rule.code] += left
	}
	a.time[limiter] += left
	a.total += r.length
}

// remainder returns the rule on the time in a round that no rule claimed.
func remainder(f facts) *timeRule {
	return &remainderRules[slices.IndexFunc(remainderRules, func(r timeRule) bool { return r.when.IsTrue(f) })]
}

func (a *analysis) shares() verdict.Shares {
	shares := verdict.Shares{}
	for name, d := range a.time {
		if d > 0 {
			shares[name] = float64(d) / float64(a.judged)
		}
	}
	return shares
}
