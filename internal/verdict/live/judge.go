// Package live judges what was sampled at the ends of a transfer while it ran: by the
// sender, by the receiver alone, or by both.
package live

import (
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
func Judge(r *transfer.Result) verdict.Verdict { return lessSure(judge(r, how{}), r) }

// JudgeSteady says what limited a transfer after slow start, which is what its steady goodput
// counts. Where slow start is not seen to end it says what Judge says.
func JudgeSteady(r *transfer.Result) verdict.Verdict {
	_, settled := r.Startup()
	return lessSure(judge(r, how{steady: settled}), r)
}

// how says what of a transfer is judged, and from where.
type how struct {
	steady  bool // after slow start
	outside bool // one watched connection: its program is not ours, and samples are rare
	hadLost bool // it had sent something again before it was watched
}

func judge(r *transfer.Result, as how) verdict.Verdict {
	switch {
	case sampled(r.Sender()) && leastRTT(r.Sender()) > 0:
		return judgeSender(r, as)
	case sampled(r.Receiver()):
		return judgeArrivals(r, judgeReceiver(r))
	case sampled(r.Sender()):
		return verdict.Unseen(verdict.Evidence{Code: verdict.NoRoundTrips}, possible...)
	}
	return verdict.Unseen(verdict.Evidence{Code: verdict.NotSampled}, possible...)
}

// possible are the limiters that remain where nothing was seen of any.
var possible = []verdict.Name{verdict.Application, verdict.SendBuffer, verdict.ReceiverWindow, verdict.Congestion,
	verdict.Bottleneck}

func sampled(e *transfer.End) bool {
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
	result      *transfer.Result
	sender      *transfer.End
	receiver    *transfer.End // nil: cannot be seen
	connections []*connection
	path        *path
	network     finding // what limits while the network decides
	time        map[verdict.Name]time.Duration
	total       time.Duration
	open        map[verdict.Code]time.Duration // of Unknown's, by what is seen of it
	startup     time.Duration                  // of SlowStart's: before slow start ended
	alike       time.Duration                  // in which send buffer and receive window held back alike
}

// judgeSender judges by the least round trip that was seen, and where the verdict does not
// agree with its own figures, once more by one that several samples support: what a kernel
// holds for the least may be one packet's luck.
func judgeSender(r *transfer.Result, as how) verdict.Verdict {
	least := leastRTT(r.Sender())
	v, figures := analyse(r, least, as)
	wrong := verdict.Check(v, figures)
	if len(wrong) == 0 {
		return v
	}
	if supported := supportedRTT(r.Sender()); supported > least {
		again, figures := analyse(r, supported, as)
		if len(verdict.Check(again, figures)) == 0 {
			return verdict.Again(again, wrong[0])
		}
	}
	return verdict.Doubted(v, wrong[0])
}

// newAnalysis judges the network of a transfer that was sampled at its sender.
func newAnalysis(r *transfer.Result, minRTT time.Duration, as how) *analysis {
	a := &analysis{result: r, sender: r.Sender(), receiver: r.Receiver(), time: map[verdict.Name]time.Duration{},
		open: map[verdict.Code]time.Duration{}}
	for i := range a.sender.Streams {
		if c := newConnection(r, i, minRTT); len(c.rounds) > 0 {
			c.outside = as.outside
			c.hadLost = as.hadLost
			a.connections = append(a.connections, c)
		}
	}
	a.path = newPath(minRTT, a.connections)
	if as.outside {
		a.path.watched(a.connections)
	}
	a.network = a.path.judgeNetwork(a.networkFacts())
	return a
}

func analyse(r *transfer.Result, minRTT time.Duration, as how) (verdict.Verdict, verdict.Figures) {
	a := newAnalysis(r, minRTT, as)
	for _, c := range a.connections {
		for i := range c.rounds {
			a.attribute(c, &c.rounds[i])
		}
	}
	a.openBetweenClosings()
	if as.steady && a.startup < a.total {
		a.time[verdict.SlowStart] -= a.startup
		a.total -= a.startup
	}
	return a.conclude(), a.figures()
}

// rules are asked in this order: each answers how much of a round it accounts for, and
// the later ones share what the earlier left.
var rules = []struct {
	name verdict.Name
	of   func(*analysis, *connection, *round) time.Duration
	code verdict.Code // what is seen, of Unknown
}{
	{verdict.MTUBlackHole, (*analysis).blackHole, ""},
	{verdict.CPU, (*analysis).senderCPU, ""},
	{verdict.NagleDelayedAck, (*analysis).nagle, ""},
	{verdict.Application, (*analysis).application, ""},
	{verdict.CPU, (*analysis).receiverCPU, ""},
	{verdict.ReceiverApplication, (*analysis).receiverApplication, ""},
	{verdict.ReceiverWindow, (*analysis).receiverWindow, ""},
	{verdict.Unknown, (*analysis).windowOrLink, verdict.WindowOrLink},
	{verdict.Unknown, (*analysis).windowHolds, verdict.WindowHoldsPath},
	{verdict.Unknown, (*analysis).sendBufferHolds, verdict.SendBufferHoldsPath},
	{verdict.SendBuffer, (*analysis).sendBuffer, ""},
	{verdict.Sender, (*analysis).programsPart, ""},
	{verdict.SlowStart, (*analysis).slowStart, ""},
	{verdict.Pacing, (*analysis).pacing, ""},
	{verdict.LocalQueue, (*analysis).localQueue, ""},
}

// attribute gives a round's time away.
func (a *analysis) attribute(c *connection, r *round) {
	left := r.length
	for _, rule := range rules {
		if left <= 0 {
			break
		}
		taken := min(max(rule.of(a, c, r), 0), left)
		left -= taken
		if other := c.alike(r, rule.name); other != "" {
			a.alike += taken
			a.time[other] += taken / 2
			taken -= taken / 2
		}
		a.time[rule.name] += taken
		switch rule.name {
		case verdict.Unknown:
			a.open[rule.code] += taken
		case verdict.SlowStart:
			a.startup += taken
		}
	}
	a.time[a.remainder(c, r)] += left
	a.total += r.length
}

// remainder is what limits in time that nobody claimed: the network, if the sender's kernel
// tells enough to have ruled the ends out or the link is seen to be full. Windows that
// open slowly, or come down by losses, may meet a full link on the way.
func (a *analysis) remainder(c *connection, r *round) verdict.Name {
	switch {
	case (a.network.name == verdict.SlowStart || a.network.code == verdict.LossBelowBest && a.path.ebbed) &&
		a.path.fullIn(c, r, len(a.connections)):
		return verdict.Bottleneck
	case c.has(transfer.HaveLimits|transfer.HaveNotSent|transfer.HaveCwnd) || a.path.full():
		return a.network.name
	}
	return verdict.Unknown
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
