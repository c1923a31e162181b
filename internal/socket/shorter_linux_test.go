package socket

import (
	"encoding/binary"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// TestShorterStructs decodes the tcp_info of older kernels, a prefix of today's: missing fields are omitted from Have,
// the others are the same.
func TestShorterStructs(t *testing.T) {
	ne := binary.NativeEndian
	whole := make([]byte, 280)
	for i := range whole {
		whole[i] = 0xee // fields beyond a short struct must not be read
	}
	whole[0], whole[1], whole[2], whole[3], whole[4] = 1, 0, 0, 0, 0
	whole[5], whole[6], whole[7] = optTimestamps|optSACK|optWscale, 0x7a, 1 // we scale by 7, they by 10; app-limited
	for at, v := range map[int]uint32{8: 204_000, 12: 40_000, 16: 1448, 20: 536, 24: 10, 28: 0, 32: 0, 36: 0, 40: 0, 44: 5,
		48: 0, 52: 7,
		56: 5, 60: 1500, 64: 0, 68: 20_000, 72: 500, 76: 1 << 30, 80: 100, 84: 1448, 88: 3, 92: 0, 96: 14_480, 100: 4,
		136: 1000, 140: 900, 144: 4321, 148: 19_000, 152: 800, 156: 700, 192: 50, 196: 11, 216: 21, 220: 22, 224: 13,
		228: 65536, 232: 1 << 20, 236: 0} {
		ne.PutUint32(whole[at:], v)
	}
	for at, v := range map[int]uint64{104: 1e6, 112: 1<<64 - 1, 120: 500_001, 128: 600_000, 160: 2e6, 168: 3e6, 176: 1e6,
		184: 5e5,
		200: 502_000, 208: 1448} {
		ne.PutUint64(whole[at:], v)
	}
	const base = transfer.HaveCwnd | transfer.HaveInFlight | transfer.HaveRecovery | transfer.HaveRTT |
		transfer.HaveRetrans
	const counters = base | transfer.HaveAcked | transfer.HaveReceived | transfer.HaveSegmentsIn
	const rate = counters | transfer.HaveNotSent | transfer.HaveMinRTT | transfer.HaveRate
	const limits = rate | transfer.HaveLimits
	const disorder = transfer.HaveRcvOOOPack
	const marked = limits | transfer.HaveDeliveredCE | transfer.HaveDSACKDups
	for _, c := range []struct {
		kernel string
		length int
		have   transfer.Fields
	}{
		{"2.6", 104, base}, {"4.1", 136, counters &^ transfer.HaveSegmentsIn}, {"4.2", 144, counters},
		{"4.6", 160, counters | transfer.HaveNotSent | transfer.HaveMinRTT},
		{"4.9", 168, rate}, {"4.10", 192, limits}, {"4.19", 224, marked},
		{"5.4", 232, marked | disorder | transfer.HaveSendWnd},
		{"6.2", 240, marked | disorder | transfer.HaveSendWnd | transfer.HaveReceiveWnd},
		{"6.18", 280, marked | disorder | transfer.HaveSendWnd | transfer.HaveReceiveWnd},
	} {
		var s transfer.Sample
		idle := DecodeLinux(whole[:c.length], &s)
		if s.Have != c.have {
			t.Errorf("Linux %s, %d bytes: has %b, want %b", c.kernel, c.length, s.Have, c.have)
		}
		wants := transfer.Sample{Have: c.have, RTT: 20 * time.Millisecond, RTTVar: 500 * time.Microsecond, Cwnd: 144800,
			InFlight: 10 * 1448, Retransmitted: 4}
		if c.length >= 136 {
			wants.Acked, wants.Received = 500_001, 600_000
		}
		if c.length >= 144 {
			wants.SegmentsIn = 900
		}
		if c.length >= 160 {
			wants.NotSent, wants.MinRTT = 4321, 19*time.Millisecond
		}
		if c.length >= 168 {
			wants.DeliveryBps, wants.AppLimited, wants.PacingBps = 16e6, true, 8e6
		}
		if c.length >= 192 {
			wants.Busy, wants.RwndLimited, wants.SndbufLimited = 3*time.Second, time.Second, 500*time.Millisecond
		}
		if c.length >= 224 {
			wants.Sent, wants.RetransmittedBytes, wants.InFlight, wants.DeliveredCE = 502_000, 1448, 551, 11
			wants.DSACKDups, wants.ReordSeen = 21, 22
		}
		if c.length >= 232 {
			wants.SendWnd, wants.RcvOOOPack = 65536, 13
		}
		if c.length >= 240 {
			wants.ReceiveWnd = 1 << 20
		}
		wants.Ssthresh = 1 << 30 * 1448
		if s != wants {
			t.Errorf("Linux %s, %d bytes:\n got %+v\nwant %+v", c.kernel, c.length, s, wants)
		}
		h := HandshakeLinux(whole[:c.length])
		if idle != 5*time.Millisecond || h.MSS != 1448 || h.SendScale != 10 || h.ReceiveScale != 7 || !h.SACK || h.ECN ||
			h.PathMTU != 1500 {
			t.Errorf("Linux %s: idle %v, %+v", c.kernel, idle, h)
		}
	}
}
