package live

import (
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// TestJudge_WindowOfFewSegments has full receive windows with the figures of labs: the link is idle from the end of a
// window to its acknowledgement, and a single segment waits for the receiver's delayed-ACK timer.
func TestJudge_WindowOfFewSegments(t *testing.T) {
	const us = time.Microsecond
	for _, c := range []struct {
		name       string
		bps        float64
		window     int64
		perAck     float64 // segments
		minRTT     time.Duration
		rtt        func(i int) time.Duration
		limiter    verdict.Name
		subtype    string
		confidence verdict.Confidence
	}{
		{"two segments, acknowledged at once, 10 Mbit/s", 6.735e6, 2920, 2, 1105 * us,
			func(int) time.Duration { return 3784 * us }, verdict.ReceiverWindow, verdict.Fixed, verdict.High},
		{"two segments, acknowledged at once, 100 Mbit/s", 31e6, 2920, 2, 500 * us,
			func(int) time.Duration { return 750 * us }, verdict.ReceiverWindow, verdict.Fixed, verdict.High},
		{"three segments, acknowledged in pairs, 20 Mbit/s", 6.49e6, 4380, 2, 2932 * us,
			func(int) time.Duration { return 7080 * us }, verdict.ReceiverWindow, verdict.Fixed, verdict.Medium},
		{"four segments, acknowledged in pairs, that fill 10 Mbit/s", 9.22e6, 5840, 2, 1060 * us,
			func(int) time.Duration { return 5040 * us }, verdict.Bottleneck, "", verdict.High},
		{"one segment, a timer of 200 ms", 82e3, 1460, 1, 1130 * us,
			func(i int) time.Duration { return time.Duration(40+i%5*40) * ms }, verdict.NagleDelayedAck, verdict.AckTimer,
			verdict.Medium},
		{"one segment, a timer of 200 ms, 40 ms of path", 75e3, 1460, 1, 40 * ms,
			func(i int) time.Duration { return time.Duration(60+i%5*45) * ms }, verdict.NagleDelayedAck, verdict.AckTimer,
			verdict.Medium},
		{"one segment on a modem without a timer", 23.9e3, 1460, 1, 154 * ms,
			func(i int) time.Duration { return time.Duration(595+i%3*5) * ms }, verdict.ReceiverWindow, verdict.Fixed, ""},
	} {
		result := steady(c.bps, c.minRTT, func(i int, s, r *transfer.Sample) {
			s.MinRTT = c.minRTT
			s.RTT = c.rtt(i)
			s.SendWnd = c.window
			r.ReceiveWnd = c.window
			s.InFlight = c.window
			s.Cwnd = 14600
			s.RwndLimited = s.At * 97 / 100
			s.Have |= transfer.HaveSegmentsIn
			s.SegmentsIn = int64(float64(s.Acked) / 1460 / c.perAck)
		})
		result.Near.Streams[0].Handshake.MSS = 1460
		result.Far.Streams[0].ReceiveBuffer.Requested = int(c.window)
		v := Judge(result)
		if v.Limiter != c.limiter || v.Subtype != c.subtype || c.confidence != "" && v.Confidence != c.confidence {
			t.Errorf("%s: %s (%s), %s\n%v\n%v", c.name, v.Limiter, v.Subtype, v.Confidence, v.Shares, v.Evidence)
		}
		complete(t, v)
	}
}
