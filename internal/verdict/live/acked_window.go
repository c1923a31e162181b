package live

import (
	"slices"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/model"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/verdict/rule"
	"github.com/fullpipe-net/fullpipe/internal/verdict/threshold"
)

// ackedWindow describes a receive window that was full most of the time. It is zero for other windows, and for
// several connections.
type ackedWindow struct {
	segments float64 // full segments that fit into the window
	ratio    float64 // share of the window that one acknowledgement covers
	idle     float64 // min RTT / time in which one window arrives
	ackDelay time.Duration
	probed   float64 // share of the windows that were acknowledged after a needless retransmission
}

var (
	windowSegments = &quantity{Name: "windowSegments", Unit: "segments",
		Means: "segments that fit into a receive window that is full most of the time; 0: not known",
		Of:    func(f facts) float64 { return f.measured.ackedWindow.segments },
		Uses:  numbers{threshold.MostlyWaiting}}
	ackedRatio = &quantity{Name: "ackedRatio", Unit: "ratio",
		Means: "bytes that an acknowledgement covers / receive window, if that is full most of the time",
		Of:    func(f facts) float64 { return f.measured.ackedWindow.ratio },
		Uses:  numbers{threshold.MostlyWaiting}}
	idleWindowRatio = &quantity{Name: "idleWindowRatio", Unit: "ratio",
		Means: "minRTT / time in which one receive window arrives",
		Of:    func(f facts) float64 { return f.measured.ackedWindow.idle }}
	ackDelay = &quantity{Name: "ackDelay", Unit: "time",
		Means: "rttGrowth without the time that a segment takes on the link, at most; or time per window - longest RTT",
		Of:    func(f facts) float64 { return ofTime(f.measured.ackedWindow.ackDelay) },
		Uses:  numbers{threshold.HeaderBytes, threshold.LeastWaits, threshold.TransferSegments}}
	probedRatio = &quantity{Name: "probedRatio", Unit: "ratio",
		Means: "DSACKs / receive windows sent: the acknowledgement followed a retransmission of data that had arrived",
		Of:    func(f facts) float64 { return f.measured.ackedWindow.probed }}

	// Nothing is sent from the end of a window to its acknowledgement, so that the link is idle for at least minRTT.
	windowAckedAtOnce = rule.Define("windowAckedAtOnce", "one acknowledgement covers the whole receive window",
		rule.All(ackedRatio.AtLeast(threshold.AckedAtOnce),
			idleWindowRatio.AtLeast(threshold.AckedIdle)))
	// A receiver acknowledges every second full segment, a single one when its timer ends (RFC 1122, 4.2.3.2).
	awaitsAckTimer = rule.Define("awaitsAckTimer",
		"the window has room for one segment, and its acknowledgement takes longer than the path explains",
		rule.All(windowSegments.Positive(), windowSegments.Below(threshold.DelayedAckSegments),
			rule.Any(probedRatio.AtLeast(threshold.ProbedWindows),
				rule.All(ackDelay.AtLeast(threshold.MinAckDelay),
					ackDelay.AtLeast(threshold.AckDelayShare, rttGrowth)))))
)

// ackedWindow measures the receive window of a single connection.
func (a *analysis) ackedWindow() (w ackedWindow) {
	c := a.connections[0]
	window := float64(a.median((*connection).window))
	if len(a.connections) != 1 || c.windowFullRatio < threshold.MostlyWaiting.Value || window <= 0 ||
		!c.has(transfer.HaveSendWnd|transfer.HaveSegmentsIn|transfer.HaveAcked) {
		return w
	}
	mss := float64(c.mss)
	w = ackedWindow{segments: window / c.fullSegment(window), ratio: c.segmentsPerAck(a.path) * mss / window,
		idle: a.path.minRTT.Seconds() * a.path.meanRate / 8 / window}
	w.ackDelay = c.ackDelay(a.path.minRTT)
	if a.path.retransmitRatio <= threshold.Losing.Value {
		w.ackDelay = max(w.ackDelay, c.unmeasuredDelay(window, a.path.minRTT))
		last := &c.samples[len(c.samples)-1]
		w.probed = float64(last.DSACKDups) * window / max(float64(last.Acked), 1)
	}
	return w
}

// fullSegment returns the segment that the receiver acknowledges at once in pairs, in bytes. A sender cuts its segments
// to half of a small window (Linux: tcp_bound_to_half_wnd in net/ipv4/tcp.c): two of them are one of the path's.
func (c *connection) fullSegment(window float64) float64 {
	mss := float64(c.mss)
	if h := c.sender.Handshake; h != nil && window < (threshold.DelayedAckSegments.Value+0.5)*mss {
		return max(mss, min(window, float64(h.PathMTU-model.HeadersTo(c.sender.Remote.Addr()))))
	}
	return mss
}

// ackDelay returns how much longer than a segment's time on the link the mean acknowledgement took in the second half
// of a transfer. Once srtt has converged, the segment takes at most the growth of the RTTs that grew least.
func (c *connection) ackDelay(minRTT time.Duration) time.Duration {
	var rtts []time.Duration
	var sum time.Duration
	for i := len(c.samples) / 2; i < len(c.samples); i++ {
		rtts = append(rtts, c.samples[i].RTT)
		sum += c.samples[i].RTT
	}
	slices.Sort(rtts)
	n := len(rtts)
	onLink := c.segmentTimeMax(minRTT)
	if c.samples[len(c.samples)-1].Acked >= int64(threshold.TransferSegments.Value)*c.mss {
		onLink = min(onLink, rtts[int(float64(n)*threshold.LeastWaits.Value)]-minRTT)
	}
	return sum/time.Duration(n) - minRTT - onLink
}

// unmeasuredDelay returns how much longer one window took in the second half of a transfer than any RTT then or, while
// srtt has not converged, than an RTT on the slowest link. The round trips of retransmitted segments are not measured
// (RFC 6298, 3).
func (c *connection) unmeasuredDelay(window float64, minRTT time.Duration) time.Duration {
	half := c.samples[len(c.samples)/2:]
	first := &half[0]
	last := &half[len(half)-1]
	if last.Acked <= first.Acked {
		return 0
	}
	longest := time.Duration(0)
	for i := range half {
		longest = max(longest, half[i].RTT)
	}
	if last.Acked < int64(threshold.TransferSegments.Value)*c.mss {
		longest = minRTT + c.segmentTimeMax(minRTT)
	}
	return scale(last.At-first.At, window/float64(last.Acked-first.Acked)) - longest
}

// segmentTimeMax returns the longest time that a segment takes on the link: a packet without payload crosses it within
// minRTT, and a segment takes longer in proportion to its size.
func (c *connection) segmentTimeMax(minRTT time.Duration) time.Duration {
	return scale(minRTT, 1+float64(c.mss)/threshold.HeaderBytes.Value)
}
