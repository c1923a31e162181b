//go:build linux

package interop

import (
	"errors"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/e2e/harness"
	"github.com/fullpipe-net/fullpipe/internal/iperf3"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

func TestOurClientOnRealIperf3Servers(t *testing.T) {
	for name, spec := range harness.Iperf3ServerSpecs() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			peer := iperf3.NewPeer(harness.StartIperf3Server(t))
			defer peer.Close()
			// Twice: the server needs a moment between two tests.
			for range 2 {
				result, err := transfer.Run(t.Context(), peer, spec, nil)
				if err != nil {
					t.Fatal(err)
				}
				span, ok := result.Received()
				if !ok || !result.Complete || span.Bytes < spec.Bytes || span.Bytes == 0 {
					t.Errorf("%d bytes of %d, complete %v", span.Bytes, spec.Bytes, result.Complete)
				}
				for _, w := range result.Warnings {
					t.Log(w)
				}
				if w := spec.Far.ReceiveBuffer; w > 0 {
					samples := result.Near.Streams[0].Samples
					if reached := samples[len(samples)-1].SendWnd; reached > int64(2*w) {
						t.Errorf("a window of %d bytes was asked for, the server offers %d", w, reached)
					}
				}
			}
		})
	}
}

func TestRefusalsOfRealIperf3Servers(t *testing.T) {
	for name, c := range map[string]struct {
		spec  transfer.Spec
		field string
	}{
		"no such congestion control": {transfer.Spec{Direction: transfer.Down, Bytes: 1000,
			Far: transfer.Socket{Congestion: "nosuch"}}, "Far.Congestion"},
		"no such congestion control (up)": {transfer.Spec{Direction: transfer.Up, Bytes: 1000,
			Far: transfer.Socket{Congestion: "nosuch"}}, "Far.Congestion"},
		"a buffer beyond its ceiling": {transfer.Spec{Direction: transfer.Up, Bytes: 1000,
			Far: transfer.Socket{ReceiveBuffer: 500 << 20}}, "Far.ReceiveBuffer"},
		"a segment size beyond its range": {transfer.Spec{Direction: transfer.Down, Bytes: 1000,
			Far: transfer.Socket{MSS: 20}}, "Far.MSS"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			peer := iperf3.NewPeer(harness.StartIperf3Server(t))
			defer peer.Close()
			_, err := transfer.Run(t.Context(), peer, c.spec, nil)
			var refused *transfer.Unsupported
			if !errors.As(err, &refused) || refused.Field != c.field {
				t.Errorf("%v; want %s to be named", err, c.field)
			}
			if err := peer.Check(transfer.TCP(c.spec)); !errors.As(err, &refused) {
				t.Errorf("asked again: %v", err)
			}
		})
	}
}

func TestBothWaysOnRealIperf3Servers(t *testing.T) {
	t.Parallel()
	peer := iperf3.NewPeer(harness.StartIperf3Server(t))
	defer peer.Close()
	up := transfer.Spec{Direction: transfer.Up, Bytes: 1 << 20, Streams: 2, Program: transfer.Program{WriteBps: 10e6,
		WriteBytes: 4000}}
	down := up
	down.Direction = transfer.Down
	a, b, err := transfer.RunBoth(t.Context(), peer, up, down, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range []*transfer.Result{a, b} {
		if span, ok := r.Received(); !ok || !r.Complete || span.Bytes < 1<<20 || len(r.Near.Streams) != 2 {
			t.Errorf("%s: %d bytes over %d streams, complete %v", r.Spec.Direction, span.Bytes, len(r.Near.Streams), r.Complete)
		}
	}
}

func TestDatagramsOnRealIperf3Servers(t *testing.T) {
	for _, d := range []transfer.Direction{transfer.Up, transfer.Down} {
		t.Run(string(d), func(t *testing.T) {
			t.Parallel()
			peer := iperf3.NewPeer(harness.StartIperf3Server(t))
			defer peer.Close()
			r, err := transfer.RunDatagrams(t.Context(), peer, transfer.DatagramSpec{Direction: d, Bps: 8e6, Size: 1000,
				Streams: 2,
				Time:    300 * time.Millisecond}, nil)
			if err != nil {
				t.Fatal(err)
			}
			if !r.Complete || r.Received < 100 || r.Lost > r.Sent/10 || (r.Reordered != nil) != (d == transfer.Down) {
				t.Errorf("%+v", r)
			}
		})
	}
}

func TestDatagramsBothWaysOnRealIperf3Servers(t *testing.T) {
	t.Parallel()
	peer := iperf3.NewPeer(harness.StartIperf3Server(t))
	defer peer.Close()
	spec := transfer.DatagramSpec{Direction: transfer.Up, Bps: 8e6, Size: 1000, Streams: 2, Time: 400 * time.Millisecond}
	other := spec
	other.Direction = transfer.Down
	outcomes, err := peer.Run(t.Context(), transfer.UDP(spec, other), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range outcomes {
		r := o.Datagrams
		if !r.Complete || r.Received < 100 || r.Lost > r.Sent/10 {
			t.Errorf("%s: %+v", r.Spec.Direction, r)
		}
	}
}
