package limiter

import (
	"time"

	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// Judge says what limited a measured transfer. It needs the samples of at least one
// end; what the missing end alone could tell stays unknown, with the candidates.
//
// Time is given away in three steps. The sender's own clocks say when it had nothing to
// send, when the peer's window and when its own buffer held it back; a window that was
// full although the path could carry no more does not count. What remains is the
// network's, and is judged over the whole transfer: a full link, loss, a local queue.
func Judge(r *transfer.Result) Verdict {
	switch {
	case sampled(r.Sender()) && leastRTT(r.Sender()) > 0:
		return judgeSender(r)
	case sampled(r.Receiver()):
		return judgeReceiver(r)
	case sampled(r.Sender()):
		return unseen("the sender's system tells no round trips", Application, SendBuffer, ReceiverWindow, Congestion, Bottleneck)
	}
	return unseen("no end of the transfer was sampled", Application, SendBuffer, ReceiverWindow, Congestion, Bottleneck)
}

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

// hearing is one transfer before the judge: its connections, its path and the time that
// each limiter has been given so far.
type hearing struct {
	result      *transfer.Result
	sender      *transfer.End
	receiver    *transfer.End // nil: cannot be seen
	connections []*connection
	path        *path
	network     finding // what limits while the network decides
	time        map[Name]time.Duration
	total       time.Duration
}

func judgeSender(r *transfer.Result) Verdict {
	h := &hearing{result: r, sender: r.Sender(), receiver: r.Receiver(), time: map[Name]time.Duration{}}
	minRTT := leastRTT(h.sender)
	for i := range h.sender.Streams {
		if c := newConnection(r, i, minRTT); len(c.rounds) > 0 {
			h.connections = append(h.connections, c)
		}
	}
	h.path = newPath(minRTT, h.connections)
	h.network = h.judgeNetwork()
	for _, c := range h.connections {
		for i := range c.rounds {
			h.spend(c, &c.rounds[i])
		}
	}
	return h.conclude()
}

// claims are made in this order: each rule answers how much of a round it can account
// for, and the later ones share what the earlier left.
var claims = []struct {
	name Name
	of   func(*hearing, *connection, *round) time.Duration
}{
	{MTUBlackHole, (*hearing).blackHole},
	{CPU, (*hearing).senderCPU},
	{NagleDelayedAck, (*hearing).nagle},
	{Application, (*hearing).application},
	{CPU, (*hearing).receiverCPU},
	{ReceiverApplication, (*hearing).reader},
	{ReceiverWindow, (*hearing).receiverWindow},
	{SendBuffer, (*hearing).sendBuffer},
	{SlowStart, (*hearing).slowStart},
	{Pacing, (*hearing).pacing},
	{LocalQueue, (*hearing).localQueue},
}

// spend gives a round's time away.
func (h *hearing) spend(c *connection, r *round) {
	left := r.length
	for _, claim := range claims {
		if left <= 0 {
			break
		}
		taken := min(max(claim.of(h, c, r), 0), left)
		h.time[claim.name] += taken
		left -= taken
	}
	h.time[h.rest(c, r)] += left
	h.total += r.length
}

// rest is what limits in time that nobody claimed: the network, if the sender's kernel
// tells enough to have ruled the ends out or the link is seen to be full. Windows that
// open slowly may meet a full link on the way.
func (h *hearing) rest(c *connection, r *round) Name {
	switch {
	case h.network.name == SlowStart && h.path.fullIn(c, r, len(h.connections)):
		return Bottleneck
	case c.has(transfer.HaveLimits|transfer.HaveNotSent|transfer.HaveCwnd) || h.path.full():
		return h.network.name
	}
	return Unknown
}

func (h *hearing) shares() Shares {
	shares := Shares{}
	for name, d := range h.time {
		if d > 0 {
			shares[name] = float64(d) / float64(h.total)
		}
	}
	return shares
}
