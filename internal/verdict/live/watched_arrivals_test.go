package live

import (
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// TestJudge_FullLinkAtTheReceiver judges a flat rate by the receiver's own estimate of the round trip.
func TestJudge_FullLinkAtTheReceiver(t *testing.T) {
	const ms = time.Millisecond
	for _, c := range []struct {
		name       string
		rtt        time.Duration // the receiver's estimate
		sinceData  time.Duration // at every second sample
		timestamps bool
		faster     int64 // of every second second
		want       verdict.Name
	}{
		{"round trip rose", 90 * ms, 0, true, 1, verdict.Bottleneck},
		{"round trip as when idle", 31 * ms, 0, true, 1, verdict.Unknown},
		{"sender pauses", 90 * ms, 40 * ms, true, 1, verdict.Unknown},
		{"no timestamps", 90 * ms, 0, false, 1, verdict.Unknown},
		{"rate varies", 90 * ms, 0, true, 5, verdict.Unknown},
		{"no estimate", 0, 0, true, 1, verdict.Unknown},
		{"pauses as long as the growth", 36 * ms, 5 * ms, true, 1, verdict.Unknown},
		{"shorter pauses", 60 * ms, 5 * ms, true, 1, verdict.Bottleneck},
	} {
		t.Run(c.name, func(t *testing.T) {
			conn := &Watched{Handshake: &transfer.Handshake{MSS: 1448, Timestamps: c.timestamps}}
			have := transfer.HaveReceived | transfer.HaveReceiveWnd | transfer.HaveMinRTT | transfer.HaveRTT
			received := int64(0)
			for i := range 100 {
				at := time.Duration(i) * 50 * ms
				n := int64(120_000)
				if at%(2*time.Second) >= time.Second {
					n *= c.faster
				}
				received += n
				q := Queues{ReceiveRTT: c.rtt}
				if i%2 == 1 {
					q.SinceData = c.sinceData
				}
				conn.Samples.Add(&transfer.Sample{At: at, Have: have, Received: received, ReceiveWnd: 6 << 20, MinRTT: 30 * ms,
					RTT: 30 * ms}, q, time.Minute)
			}
			v := conn.Judge(false)
			if v.Limiter != c.want || v.Confidence == verdict.High {
				t.Errorf("%s, %s: %v %v", v.Limiter, v.Confidence, v.Shares, v.Evidence)
			}
		})
	}
}
