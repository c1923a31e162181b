package live

import (
	"time"

	"github.com/fullpipe-net/fullpipe/internal/verdict"
	"github.com/fullpipe-net/fullpipe/internal/verdict/rule"
	"github.com/fullpipe-net/fullpipe/internal/verdict/threshold"
)

// watchedFacts are facts of a watched connection that its samples do not contain.
type watchedFacts struct {
	lossBefore  bool // it had retransmitted before it was watched
	dataArrived bool // full segments have arrived in its life
	queue       sendQueue
}

// sendQueue is the state of a watched connection's send buffer by its samples. Its zero value: not
// known.
type sendQueue struct {
	size int64 // bytes, at the first sample with a known size
	// fullRatio and roomRatio are shares of the samples without unsent data: those with a full
	// buffer and those with room. Both are 0 where the sizes are not known.
	fullRatio, roomRatio float64
	dryRatio             float64 // the share of all samples without unsent data and with a full buffer
	alwaysFull           bool
	// used is the fullest state without unsent data, usedOf the buffer's size at that time: an
	// automatic one changes.
	used, usedOf int64
}

// sendQueue returns the state of the send buffer in the window.
func (c *Watched) sendQueue() sendQueue {
	blocks := c.writerBlocks()
	mss := c.Handshake.SegmentSize()
	var q sendQueue
	var sent, sentFull, sentRoom, full float64
	for i := range c.Queues {
		at := &c.Queues[i]
		if at.SendBuffer == 0 {
			continue
		}
		if q.size == 0 {
			q.size = at.SendBuffer
		}
		used := float64(at.SendQueued) / float64(at.SendBuffer)
		isFull := blocks && used >= threshold.FullBuffer
		if isFull {
			full++
		}
		if c.Of[i].NotSent >= mss {
			continue
		}
		sent++
		if at.SendQueued > q.used || q.usedOf == 0 {
			q.used = at.SendQueued
			q.usedOf = at.SendBuffer
		}
		switch {
		case isFull:
			sentFull++
		case !blocks || used < threshold.RoomyBuffer:
			sentRoom++
		}
	}
	if q.size == 0 {
		return q
	}
	q.alwaysFull = full >= threshold.FlatShare.Value*float64(len(c.Queues))
	q.fullRatio = sentFull / max(sent, 1)
	q.roomRatio = sentRoom / max(sent, 1)
	q.dryRatio = sentFull / float64(len(c.Of))
	return q
}

// writerBlocks reports whether the program ever waited for the send buffer in the window. It writes
// until the queued data reaches the buffer's size (sk_stream_memory_free), so a queue that is
// always much smaller means no waiting.
func (c *Watched) writerBlocks() bool {
	for i := range c.Queues {
		q := &c.Queues[i]
		if q.SendBuffer > 0 && float64(q.SendQueued) >= threshold.FilledBuffer*float64(q.SendBuffer) {
			return true
		}
	}
	return len(c.Of) > 0 && c.Of[len(c.Of)-1].SndbufLimited > c.Of[0].SndbufLimited
}

// Inputs of the rules on watched connections.
var (
	isWatched = rule.Fact("isWatched", "the connection belongs to another program",
		func(f facts) bool { return f.watched != nil })
	dryQueueRatio = &quantity{Name: "dryQueueRatio", Unit: "ratio",
		Means: "share of the samples of a watched connection with a full send buffer and nothing unsent",
		Of:    func(f facts) float64 { return f.queue().dryRatio }}
	sendBufferSize = &quantity{Name: "sendBufferSize", Unit: "bit",
		Means: "size of a watched connection's send buffer",
		Of:    func(f facts) float64 { return 8 * float64(f.queue().size) }}
	steadyBDP = &quantity{Name: "steadyBDP", Unit: "bit", Means: "meanRate × base RTT",
		Of: func(f facts) float64 { return f.path.meanRate * f.path.baseRTT.Seconds() }}
	queueAlwaysFull = rule.Fact("sendBufferAlwaysFull",
		"the send buffer of a watched connection is full at nearly all samples",
		func(f facts) bool { return f.queue().alwaysFull })
	networkIsFullLink = rule.Fact("networkIsFullLink", "the network rules found a full link",
		func(f facts) bool { return f.network.name == verdict.Bottleneck })
	networkHasNoQueue = rule.Fact("networkHasNoQueue",
		"the network rules found no more than a congestion window or a rate: no loss, and no queue",
		func(f facts) bool {
			switch f.network.code {
			case verdict.CwndFull, verdict.CwndOpens, verdict.CwndOpensToTheEnd, verdict.FullLinkNoQueue:
				return true
			}
			return false
		})
	dataArrived = rule.Fact("dataArrived",
		"full segments of a watched connection have arrived in its life",
		func(f facts) bool { return f.watched != nil && f.watched.dataArrived })
	// A buffer that is empty that often is refilled in bursts, and the kernel does not open an
	// unused congestion window (RFC 7661): the buffer limits the rest of the time too.
	queueRunsDry = rule.Define("sendQueueRunsDry",
		"the send buffer of a watched connection runs dry often enough to limit all the time",
		rule.Any(dryQueueRatio.AtLeast(threshold.HeadlineShare),
			rule.All(dryQueueRatio.AtLeast(threshold.BufferEmpty), networkHasNoQueue)))
	// The kernel accepts super-segments of 64 KB beyond the buffer, and their bursts queue on any
	// link.
	bufferOrLink = rule.All(networkIsFullLink, queueAlwaysFull,
		sendBufferSize.AtMost(threshold.WindowLimits, steadyBDP))
)

// Times in which all that was written is on its way: to the send buffer where that was full, to the
// program where it had room.
var (
	fullQueueTime = queueTime("with a full send buffer",
		func(q sendQueue) float64 { return q.fullRatio })
	roomQueueTime = queueTime("with room in the send buffer",
		func(q sendQueue) float64 { return q.roomRatio })
	restQueueTime = queueTime("with neither",
		func(q sendQueue) float64 { return 1 - q.fullRatio - q.roomRatio })
)

// queueTime returns a share of the time with an empty send queue.
func queueTime(where string, share func(sendQueue) float64) *claim {
	return &claim{name: emptyQueueTime.name + ", " + where, means: emptyQueueTime.means,
		of: func(f facts) time.Duration { return scale(emptyQueueTime.of(f), share(f.queue())) }}
}

// queue returns the state of the send buffer, or its zero value where the program is ours.
func (a *analysis) queue() sendQueue {
	if a.watched == nil {
		return sendQueue{}
	}
	return a.watched.queue
}

// queueEvidence returns the evidence on the send queue of a watched connection.
func (a *analysis) queueEvidence() []verdict.Evidence {
	q := a.queue()
	if q.usedOf == 0 || len(a.sentTime) == 0 {
		return nil
	}
	values := verdict.Values{"queued_bytes": float64(q.used), "granted_bytes": float64(q.usedOf),
		"full_ratio": q.fullRatio, "room_ratio": q.roomRatio}
	return []verdict.Evidence{{Limiter: verdict.Sender, Code: verdict.SendQueueSeen, Values: values}}
}

// beforeQueue returns the shares as they are without the state of the send queue: the sender's time
// is one.
func (a *analysis) beforeQueue(shares verdict.Shares) verdict.Shares {
	if len(a.sentTime) == 0 {
		return shares
	}
	whole := verdict.Shares{}
	for name, share := range shares {
		sent := ratio(a.sentTime[name], a.judged)
		if rest := share - sent; rest > 1e-9 {
			whole[name] += rest
		}
		whole[verdict.Sender] += sent
	}
	return whole
}
