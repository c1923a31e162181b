//go:build linux

package kernel

import (
	"strings"
	"testing"

	"github.com/fullpipe-net/fullpipe/e2e/harness"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// TestLabHosts_BehaveAsConfigured checks that connections show a lab's configured hosts: the unacknowledged bytes of
// AFD's rule for each write size and quota, and the features of the receiver's stack.
func TestLabHosts_BehaveAsConfigured(t *testing.T) {
	const afd = 8192
	own := func(spec transfer.Spec) transfer.Spec {
		spec.Direction, spec.Bytes = transfer.Up, 500_000
		return spec
	}
	write := func(bytes int) transfer.Spec { return transfer.Spec{Program: transfer.Program{WriteBytes: bytes}} }
	for _, tt := range []struct {
		name, settings string
		spec           transfer.Spec
		outstanding    int // the most that may be unacknowledged; it is also reached, to within a segment
		scale, sack    bool
		timestamps     bool
	}{
		{"AFD, small writes", "near.stack=windows-2000", write(1024), afd, true, true, false},
		{"AFD, writes of twice the quota", "near.afd=8KiB", write(2 * afd), 3 * afd, true, true, true},
		{"AFD, a quota of its own", "near.afd=32KiB", write(afd), 4 * afd, true, true, true},
		{"AFD, SO_SNDBUF", "near.afd=8KiB", transfer.Spec{Near: transfer.Socket{SendBuffer: 24 << 10},
			Program: transfer.Program{WriteBytes: afd}},
			24 << 10, true, true, true},
		{"a window of 16 KiB", "far.window=16KiB", transfer.Spec{}, 18 << 10, true, true, true},
		{"no scaling", "far.scaling=off,near.afd=256KiB", write(afd), 65535, false, true, true},
		{"no SACK and no timestamps", "far.sack=off,far.timestamps=off,near.afd=16KiB", write(afd), 16 << 10, true, false,
			false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r, err := harness.RunTransfer(t, harness.LabTransfer{Path: "rate=20mbit,rtt=30ms,queue=2bdp," + tt.settings,
				Spec: own(tt.spec)})
			if err != nil {
				t.Fatal(err)
			}
			s := r.Near.Streams[0]
			if most := s.SendBuffer.Effective; most > tt.outstanding || most < tt.outstanding-4<<10 {
				t.Errorf("%d bytes were unacknowledged, want %d", most, tt.outstanding)
			}
			h := s.Handshake
			if h == nil || h.SendScale >= 0 != tt.scale || h.SACK != tt.sack || h.Timestamps != tt.timestamps {
				t.Errorf("the handshake settled on %+v", h)
			}
		})
	}
}

// TestServer2012OffersAFactorOfZero checks a Server 2012. As receiver it offers a factor of 0 and stays below 64,512
// bytes (in whole segments: 64,240), until the program asks for a buffer. As sender it keeps 64 KB in flight with any
// receive window.
func TestServer2012OffersAFactorOfZero(t *testing.T) {
	for _, tt := range []struct {
		name, settings string
		far            transfer.Socket
		zero           bool
		least, most    int // unacknowledged at once
	}{
		{"as it is", "far.stack=server-2012,far.app=cygwin", transfer.Socket{}, true, 60_000, 64_512},
		{"a narrower policy", "far.stack=server-2012,far.app=cygwin,far.window=30kB",
			transfer.Socket{}, true, 24_000, 30_000},
		{"SO_RCVBUF", "far.stack=server-2012,far.app=cygwin",
			transfer.Socket{ReceiveBuffer: 300_000}, false, 150_000, 1 << 20},
		{"a Linux of the same window", "far.window=64512", transfer.Socket{}, false, 56_000, 67_000},
		{"it sends", "near.stack=server-2012,near.app=cygwin", transfer.Socket{}, false, 60_000, 65_536},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			spec := transfer.Spec{Direction: transfer.Up, Bytes: 2_000_000, Far: tt.far}
			r, err := harness.RunTransfer(t, harness.LabTransfer{Path: "rate=25mbit,rtt=90ms,queue=2bdp," + tt.settings,
				Spec: spec})
			if err != nil {
				t.Fatal(err)
			}
			s := r.Near.Streams[0]
			if s.Handshake == nil || s.Handshake.SendScale == 0 != tt.zero || s.Handshake.SendScale < 0 {
				t.Errorf("the handshake settled on %+v", s.Handshake)
			}
			far := r.Far.Streams[0].ReceiveBuffer
			if far.Constant != (far.Requested == 0 && strings.HasPrefix(tt.settings, "far.")) {
				t.Errorf("the far end's receive buffer: %+v", far)
			}
			if reached := s.SendBuffer.Effective; reached < tt.least || reached > tt.most {
				t.Errorf("%d bytes were unacknowledged, want %d to %d", reached, tt.least, tt.most)
			}
		})
	}
}
