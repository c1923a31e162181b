package timeline

import (
	"github.com/fullpipe-net/fullpipe/internal/flow"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
	"github.com/fullpipe-net/fullpipe/internal/verdict/threshold"
)

// windowFacts returns what the capture shows of the receive window.
func (t *timeline) windowFacts() verdict.WindowFacts {
	d := t.d
	scale := d.Scale
	if d.NoScale {
		scale = -1
	}
	return verdict.WindowFacts{Scale: scale, ScaleKnown: d.ScaleKnown, Largest: d.WindowMax,
		First:  int64(t.c.OfferOf(d.To).Window),
		Middle: d.Slices[len(d.Slices)/4].WindowMax, Last: d.Slices[len(d.Slices)-1].WindowMax}
}

// scaleMismatch reports whether the windows are in another unit than the handshake agreed on. Where it is not known in
// which, they never grew beyond the handshake's own.
func (t *timeline) scaleMismatch() bool {
	m, ok := t.c.ScaleMismatch(t.d)
	return ok && (m.Scale >= 0 || t.d.WindowMax < m.Offered)
}

// noUpdates reports whether nearly all closed windows opened only in the answer to a probe: the receiver's TCP sends no
// updates of its window, so nothing shows when its program had read.
func (t *timeline) noUpdates() bool {
	d := t.d
	return d.Openings >= int64(threshold.MinSegments.Value) && 4*d.ProbedOpenings >= 3*d.Openings &&
		float64(d.ProbedTime)/1e9 > threshold.HeadlineShare.Value*t.clock(flow.Closed)
}

// closedOf returns the limiter while the window was closed.
func (t *timeline) closedOf() verdict.Name {
	switch {
	case t.noUpdates():
		return verdict.ReceiverWindow
	case t.d.ScaleKnown || t.d.ZeroWindows > 0:
		return verdict.ReceiverApplication
	}
	return verdict.Unknown
}

func (t *timeline) describeProbes(v verdict.Values) {
	v["window_bytes"] = float64(t.d.WindowMax)
	v["openings"] = float64(t.d.ProbedOpenings)
	v["waited_s"] = float64(t.d.ProbedTime) / 1e9
}

func (t *timeline) describeWindow(v verdict.Values) {
	v["window_bytes"] = float64(t.d.WindowMax)
	v["rtt_s"] = t.baseRTT
	v["window_scale"] = float64(t.d.Scale)
	v["allows_bps"] = t.allows(t.d.WindowMax)
	if !t.d.ScaleKnown {
		v["scale_inferred"] = 1
	}
}

// allows is what a window gives over the empty path, bit/s.
func (t *timeline) allows(window int64) float64 {
	if t.baseRTT <= 0 {
		return 0
	}
	least, most := t.usable(window)
	return max(least, min(most, t.goodput*t.baseRTT)) * 8 / t.baseRTT
}

// usable returns the least and the most of a window that a sender fills each round trip, bytes. It sends no part of a
// segment while others are outstanding (RFC 9293, 3.8.6.2.1), and the last of an odd number may wait for the
// acknowledgement of the next pair. In windows of many segments that does not matter.
func (t *timeline) usable(window int64) (least, most float64) {
	mss := int64(max(t.d.MSS, 536))
	segments := window / mss
	if segments == 0 || segments >= int64(threshold.InitialSegments.Value) || t.cutsSegments() {
		return float64(window), float64(window)
	}
	most = float64(segments * mss)
	if inPairs := 2*t.d.Bytes > 3*mss*t.d.Acks; inPairs && segments > 1 {
		segments -= segments % 2
	}
	return float64(segments * mss), most
}

// windowOf returns the limiter while the window was full: the link, where the window would allow a fifth more than
// the rate.
func (t *timeline) windowOf(s *flow.Slice) verdict.Name {
	if !t.windowKnown() || t.unclear {
		return verdict.Unknown
	}
	window, _ := t.usable(s.WindowMax)
	if t.baseRTT > 0 && window/t.baseRTT > threshold.WindowLimits.Value*t.rate(s) {
		switch {
		case t.ackQueued(s):
			return verdict.AckPath
		case (t.serialised || t.lineQueued(s) || t.lineBusy || t.even && t.acksPerWindow() > 1) && t.full(s):
			return verdict.Bottleneck
		}
	}
	if t.baseRTT > 0 && window/t.baseRTT > threshold.WindowFarAbove.Value*t.rate(s) {
		// A whole window is on its way, and comes much later than over the empty path: it waits
		// in a queue. Where round trips show none, a loss had let less out.
		switch {
		case t.lineQueued(s):
			return verdict.Bottleneck
		case t.losing:
			return verdict.Congestion
		}
	}
	return verdict.ReceiverWindow
}

// windowKnown reports whether the window's size can be relied on. Without the handshake, the least scale that fits is
// used only if the bytes outstanding stayed at that window for long.
func (t *timeline) windowKnown() bool {
	d := t.d
	if d.ScaleKnown {
		return true
	}
	full := t.clock(flow.Full)
	return full > threshold.ScalePlateau.Value*t.length &&
		float64(d.WindowMax) >= threshold.ProbeSegments.Value*float64(d.MSS) &&
		d.ScaleRaise-d.First < (d.Last-d.First)/3
}
