package timeline

import (
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/flow"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// windowed returns a capture at the sender of a transfer that a window of raw << scale limits: a whole window each
// round trip, acknowledged two segments at a time.
func windowed(rtt int64, raw uint16, scale uint8, rounds int) *flow.Table {
	table := flow.NewTable(flow.Config{})
	client, server := flow.Endpoint4(1, 40000), flow.Endpoint4(2, 5201)
	const mss = 1460
	options := flow.HasMSS | flow.HasScale | flow.HasSACKPermitted
	table.Add(&flow.Segment{Src: client, Dst: server, Seq: 999, Flags: flow.SYN, Window: 64240, MSS: mss, Scale: 7,
		Options: options})
	table.Add(&flow.Segment{At: rtt, Src: server, Dst: client, Seq: 4999, Ack: 1000, Flags: flow.SYN | flow.ACK,
		Window: raw, MSS: mss, Scale: scale, Options: options})
	sent, acked := uint32(0), uint32(0)
	segments := int(raw) << scale / mss &^ 1
	for round := range rounds {
		at := rtt + int64(round)*rtt
		for i := range segments {
			now := at + int64(i)*20_000
			if round > 0 && i%2 == 0 && acked < sent {
				acked += 2 * mss
				table.Add(&flow.Segment{At: now, Src: server, Dst: client, Seq: 5000, Ack: 1000 + acked, Flags: flow.ACK,
					Window: raw})
			}
			table.Add(&flow.Segment{At: now + 1000, Src: client, Dst: server, Seq: 1000 + sent, Ack: 5000, Flags: flow.ACK,
				Window: 500, Payload: mss})
			sent += mss
		}
	}
	return table
}

func TestWindowsInCaptures(t *testing.T) {
	tests := []struct {
		name    string
		raw     uint16
		scale   uint8
		subtype string
	}{
		{"scale offered with factor 0", 65535, 0, verdict.ScaleZero},
		{"stuck at 63 << 10", 63, 10, verdict.AutotuneCeiling},
		{"a buffer of 128 KiB", 1024, 7, verdict.Fixed},
	}
	for _, test := range tests { // the SYN-ACK's window, which is not scaled, is raw
		t.Run(test.name, func(t *testing.T) {
			c := windowed(40e6, test.raw, test.scale, 60).Finish()[0]
			d := c.Directions()[0]
			g := Judge(c, d)
			if g.Limiter != verdict.ReceiverWindow || g.Subtype != test.subtype || g.Confidence != verdict.High ||
				g.Vantage != AtSender {
				t.Errorf("%s (%s), %s, tap at the %s: %v", g.Limiter, g.Subtype, g.Confidence, g.Vantage, g.Shares)
			}
			if d.MSS != 1460 || d.WindowMax != int64(test.raw)<<test.scale {
				t.Errorf("MSS %d, window %d", d.MSS, d.WindowMax)
			}
			sum := 0.0
			for _, share := range g.Shares {
				sum += share
			}
			if sum < 0.999 || sum > 1.001 {
				t.Errorf("shares sum to %v", sum)
			}
			if p := g.Prediction; p == nil || p.LowBps < 1.09*g.GoodputBps {
				t.Errorf("prediction %+v for %v bit/s", p, g.GoodputBps)
			}
			for i := range g.Bands {
				if i > 0 && g.Bands[i].Start < g.Bands[i-1].End {
					t.Errorf("bands overlap: %v", g.Bands)
				}
			}
		})
	}
}

// The receiver counts its windows with another scale than the handshake agreed on.
func TestJudge_WindowScaleMismatch(t *testing.T) {
	tests := []struct {
		name           string
		window         uint16 // of the SYN-ACK
		offered, scale int    // -1: not offered
		factor         uint16 // the first window is as much of the handshake's in 256ths
		mismatch       bool
		confidence     verdict.Confidence // at most, of a mismatch
	}{
		{"scale 1 offered, 6 applied", 28960, 1, 6, 256, true, verdict.High},
		{"scale 0 offered, 7 applied", 65160, 0, 7, 256, true, verdict.High},
		{"scale 4 offered, 5 applied", 64240, 4, 5, 256, true, verdict.High},
		{"scale 2 offered, 10 applied", 65535, 2, 10, 256, true, verdict.High},
		{"the option stripped on its way back", 65160, -1, 7, 256, true, verdict.High},
		{"as offered", 28960, 3, 3, 256, false, ""},
		{"a window of another size", 65160, 2, 3, 170, true, verdict.Medium},
		{"a window that no SYN can offer", 65535, 0, 8, 700, true, verdict.Medium},
		{"a window rounded by its scale", 28960, 14, 14, 256, false, ""},
		{"larger than the handshake's", 65535, 3, 2, 256, false, ""},
	}
	for _, test := range tests {
		for _, rtt := range []int64{5 * ms, 80 * ms} {
			x := newTape(rtt, 0)
			x.all[1].Window = test.window
			if test.offered < 0 {
				x.all[1].Options &^= flow.HasScale
			}
			x.all[1].Scale = uint8(max(test.offered, 0))
			raw := uint16(int(test.window) >> test.scale * int(test.factor) / 256)
			window := int(raw) << max(test.offered, 0)
			length := min(1460, window)
			x.data(2*rtt, 0, length, 0)
			x.all = append(x.all, flow.Segment{At: 3 * rtt, Src: serverEnd, Dst: clientEnd, Seq: 5000,
				Ack: 1000 + uint32(length), Flags: flow.ACK, Window: raw})
			pos := length
			for at := 3*rtt + ms; at < 200*rtt; at += rtt + ms {
				from := pos
				for pos < from+window {
					length := min(1460, from+window-pos)
					x.data(at+int64(pos-from)/10, pos, length, 0)
					pos += length
				}
				x.all = append(x.all, flow.Segment{At: at + int64(window)/10 + rtt, Src: serverEnd, Dst: clientEnd,
					Seq: 5000, Ack: 1000 + uint32(pos), Flags: flow.ACK, Window: raw})
			}
			g, d := x.judge(t)
			got := g.Subtype == verdict.ScaleMismatch
			if got != test.mismatch || got != has(&g, verdict.CapturedScaleMismatch) ||
				test.mismatch && (g.Limiter != verdict.ReceiverWindow || g.Confidence == verdict.High &&
					test.confidence != g.Confidence) {
				t.Errorf("%s, %d ms: %s %s (%s) %v, window %d", test.name, rtt/ms, g.Confidence, g.Limiter, g.Subtype, g.Shares,
					d.WindowMax)
			}
		}
	}
}

// A SYN-ACK without options of a receiver whose peer offered them names SYN cookies.
func TestJudge_BareSYNACK(t *testing.T) {
	for _, options := range []flow.Options{flow.HasMSS, flow.HasMSS | flow.HasSACKPermitted, flow.HasMSS | flow.HasScale} {
		x := newTape(20*ms, 0)
		x.all[1].Options = options
		pos := 0
		for at := 40 * ms; at < 4000*ms; at += 21 * ms {
			for k := range 44 {
				x.data(at+int64(k)*1000, pos, 1460, 0)
				pos += 1460
			}
			x.all = append(x.all, flow.Segment{At: at + 20*ms, Src: serverEnd, Dst: clientEnd, Seq: 5000,
				Ack: 1000 + uint32(pos), Flags: flow.ACK, Window: 64240})
		}
		if g, _ := x.judge(t); has(&g, verdict.CapturedBareSynAck) != (options == flow.HasMSS) {
			t.Errorf("options %b: %s %v", options, g.Limiter, g.Evidence)
		}
	}
}

func TestTooLittleIsUnknown(t *testing.T) {
	table := flow.NewTable(flow.Config{})
	table.Add(&flow.Segment{Src: flow.Endpoint4(1, 1), Dst: flow.Endpoint4(2, 2), Seq: 1, Flags: flow.ACK, Payload: 100})
	c := table.Finish()[0]
	if g := Judge(c, c.Directions()[0]); g.Limiter != verdict.Unknown || g.Confidence != verdict.Low ||
		len(g.Evidence) == 0 {
		t.Errorf("%+v", g)
	}
}
