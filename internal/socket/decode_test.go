package socket

import (
	"encoding/binary"
	"reflect"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// fixture writes a C struct field after field, aligned as a C compiler aligns them.
type fixture []byte

func (f fixture) align(n int) fixture {
	for len(f)%n != 0 {
		f = append(f, 0xee) // padding must not be read
	}
	return f
}

func (f fixture) u8(v ...uint8) fixture { return append(f, v...) }

func (f fixture) u32(values ...uint32) fixture {
	for _, v := range values {
		f = binary.LittleEndian.AppendUint32(f.align(4), v)
	}
	return f
}

func (f fixture) u64(values ...uint64) fixture {
	for _, v := range values {
		f = binary.LittleEndian.AppendUint64(f.align(8), v)
	}
	return f
}

// windowsV0 writes the fields of TCP_INFO_v0 in the order of mstcpip.h.
func windowsV0() fixture {
	return fixture{}.u32(4, 1460).u64(5000). // State, Mss, ConnectionTimeMs
							u8(1).u32(40_500, 39_900, 146_000, 292_000, 8<<20, 65_536, 262_144). // TimestampsEnabled, RttUs … RcvBuf
							u64(10_000_000, 1234).                                               // BytesOut, BytesIn
		// BytesReordered, BytesRetrans, FastRetrans, DupAcksIn, TimeoutEpisodes, SynRetrans
		u32(1, 4381, 2, 7, 1).u8(0)
}

func TestDecodeWindows(t *testing.T) {
	want := transfer.Sample{
		Have: transfer.HaveRTT | transfer.HaveMinRTT | transfer.HaveInFlight | transfer.HaveCwnd | transfer.HaveSendWnd |
			transfer.HaveReceiveWnd | transfer.HaveAcked | transfer.HaveReceived | transfer.HaveRetrans,
		RTT: 40500 * time.Microsecond, MinRTT: 39900 * time.Microsecond, InFlight: 146_000, Cwnd: 292_000, SendWnd: 8 << 20,
		ReceiveWnd: 65_536, Sent: 10_000_000, Received: 1234, RetransmittedBytes: 4381, Retransmitted: 4,
		Acked: 10_000_000 - 4381 - 146_000,
	}
	var got transfer.Sample
	v0 := windowsV0().align(8)
	if err := DecodeWindows(v0, &got); err != nil || len(v0) != windowsInfoV0 || got != want {
		t.Errorf("version 0, %d bytes: %v\n got %+v\nwant %+v", len(v0), err, got, want)
	}
	// SndLimTransRwin, TimeRwin, BytesRwin; then Cwnd's and Snd's
	v1 := windowsV0().u32(3, 700).u64(1).u32(4, 1100).u64(2).u32(5, 200).u64(3)
	want.Have |= transfer.HaveLimits
	want.RwndLimited, want.SndbufLimited, want.Busy = 700*time.Millisecond, 200*time.Millisecond, 2*time.Second
	got = transfer.Sample{}
	if err := DecodeWindows(v1, &got); err != nil || len(v1) != windowsInfoV1 || got != want {
		t.Errorf("version 1, %d bytes: %v\n got %+v\nwant %+v", len(v1), err, got, want)
	}
	if DecodeWindows(v0[:87], &got) == nil {
		t.Error("a short struct was read")
	}
}

func TestDecodeDarwin(t *testing.T) {
	// State, scales, pad; options … rttvar; fast open bits; counters
	b := fixture{}.u8(4, 7, 6, 0).u32(1|2|4, 1, 230, 1448, 65535<<14, 90_000, 131_072, 50_000, 262_144, 41, 40, 3, 0).
		u64(700, 1_000_000, 2896, 350, 5000, 0, 2)
	var got transfer.Sample
	h, err := DecodeDarwin(b, &got)
	want := transfer.Sample{
		Have: transfer.HaveRTT | transfer.HaveCwnd | transfer.HaveSendWnd | transfer.HaveReceiveWnd | transfer.HaveQueue |
			transfer.HaveRetrans | transfer.HaveReceived,
		Recovering: true, Cwnd: 90_000, SendWnd: 131_072, Queued: 50_000, ReceiveWnd: 262_144, RTT: 40 * time.Millisecond,
		RTTVar: 3 * time.Millisecond, Sent: 1_000_000, RetransmittedBytes: 2896, Received: 5000, Retransmitted: 2,
	}
	if err != nil || len(b) != tcpConnectionInfo || got != want {
		t.Errorf("%d bytes: %v\n got %+v\nwant %+v", len(b), err, got, want)
	}
	if want := (&transfer.Handshake{MSS: 1448, SendScale: 7, ReceiveScale: 6, SACK: true,
		Timestamps: true}); !reflect.DeepEqual(h, want) {
		t.Errorf("handshake %+v, want %+v", h, want)
	}
	if _, err := DecodeDarwin(b[:111], &got); err == nil {
		t.Error("a short struct was read")
	}
}

func TestDecodeFreeBSD(t *testing.T) {
	// State, five placeholders (the last is the options), the scales
	head := fixture{}.u8(4, 0, 0, 0, 0, 2|4, 9|6<<4).u32(230_000, 0, 1460, 1460)
	head = head.u32(0, 0, 0, 0, 0, 0, 0, 5, 0)                                   // unacked … last_ack_recv
	head = head.u32(0, 0, 40_200, 1500, 30_000, 60_000, 0, 0, 0, 65_535, 99_000) // pmtu … rcv_space, snd_wnd
	head = head.u32(0, 1000, 2000, 0, 3, 1, 0)                                   // bwnd … zerowin
	want := transfer.Sample{
		Have: transfer.HaveRTT | transfer.HaveCwnd | transfer.HaveSendWnd | transfer.HaveReceiveWnd | transfer.HaveRetrans,
		RTT:  40200 * time.Microsecond, RTTVar: 1500 * time.Microsecond, Ssthresh: 30_000, Cwnd: 60_000, ReceiveWnd: 65_535,
		SendWnd: 99_000, Retransmitted: 3,
	}
	var got transfer.Sample
	old := append(append(fixture{}, head...), make([]byte, 26*4)...)
	h, err := DecodeFreeBSD(old, &got)
	if err != nil || len(head) != freebsdInfo || got != want {
		t.Errorf("before 14, %d bytes: %v\n got %+v\nwant %+v", len(head), err, got, want)
	}
	if want := (&transfer.Handshake{MSS: 1460, SendScale: 9, ReceiveScale: 6, SACK: true}); !reflect.DeepEqual(h, want) {
		t.Errorf("handshake %+v, want %+v", h, want)
	}
	// ECN counters, TLP counters; una and max wrap around; padding
	now := append(fixture{}, head...).u32(0, 0, 0, 0, 0, 0, 0, 0, 0).u64(0).u32(1<<32-500, 1500, 0, 0,
		0).u32(make([]uint32, 10)...).align(8)
	want.Have |= transfer.HaveInFlight
	want.InFlight = 2000
	got = transfer.Sample{}
	if _, err := DecodeFreeBSD(now, &got); err != nil || len(now) != freebsdInfo14 || got != want {
		t.Errorf("14, %d bytes: %v\n got %+v\nwant %+v", len(now), err, got, want)
	}
	if _, err := DecodeFreeBSD(head[:131], &got); err == nil {
		t.Error("a short struct was read")
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(windowsV0()))
	f.Add(make([]byte, 300))
	f.Fuzz(func(t *testing.T, b []byte) {
		var s transfer.Sample
		for name, err := range map[string]error{
			"windows": DecodeWindows(b, &s),
			"darwin":  second(DecodeDarwin(b, &s)),
			"freebsd": second(DecodeFreeBSD(b, &s)),
		} {
			if err == nil && (s.Acked < 0 || s.InFlight < 0 || s.Sent < 0 || s.RTT < 0) {
				t.Errorf("%s: %+v", name, s)
			}
		}
	})
}

func second[T any](_ T, err error) error { return err }
