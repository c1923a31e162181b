package iperf3

import (
	"errors"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/testenv/must"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// TestRun_RateSearchWithFeedback checks that the sender, in either role, gets the receiver's feedback. The search
// itself is tested in internal/datagram.
func TestRun_RateSearchWithFeedback(t *testing.T) {
	for _, d := range []transfer.Direction{transfer.Up, transfer.Down} {
		t.Run(string(d), func(t *testing.T) {
			t.Parallel()
			peer := NewPeer(serve(t, &Server{UDP: true}))
			defer peer.Close()
			peer.Ticket = NewCookie()
			spec := transfer.DatagramSpec{Direction: d, Bps: 60e6, Search: true, Time: 1500 * time.Millisecond}
			r := must.Get(transfer.RunDatagrams(t.Context(), peer, spec, nil))(t)
			if !r.Complete || len(r.Seconds) == 0 { // the receiver's feedback determines the seconds
				t.Errorf("%.3g Mbit/s; %+v", r.Bps()/1e6, r.Seconds)
			}
			peer.Ticket = Cookie{}
			var refused *transfer.Unsupported
			if _, err := transfer.RunDatagrams(t.Context(), peer, spec, nil); !errors.As(err, &refused) ||
				refused.Field != "Search" {
				t.Errorf("a stock iperf3 was asked for feedback: %v", err)
			}
		})
	}
}
