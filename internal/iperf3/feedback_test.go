package iperf3

import (
	"errors"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

func FuzzReadStatus(f *testing.F) {
	var b [statusSize]byte
	(&status{elapsed: time.Second, bytes: 5, highest: 3, lost: 1, strange: 1, delay: time.Millisecond}).put(b[:])
	f.Add(b[:])
	f.Add([]byte("FPS1"))
	f.Fuzz(func(t *testing.T, datagram []byte) {
		s, ok := readStatus(datagram)
		if !ok {
			return
		}
		var again [statusSize]byte
		if s.put(again[:]); string(again[:]) != string(datagram) {
			t.Fatalf("%x was read as %+v", datagram, s)
		}
		var a account
		a.add(s)
		a.add(status{})
	})
}

func TestAccountOfStatuses(t *testing.T) {
	var a account
	for i := range 41 {
		n := int64(i)
		f, news := a.add(status{elapsed: time.Duration(i+1) * 50 * time.Millisecond, bytes: n * 1000, highest: n * 2, lost: n, strange: 0, delay: 10 * time.Millisecond})
		if i > 0 && (!news || f.SequenceErrors != 1 || f.Delay != 10*time.Millisecond) {
			t.Fatalf("%d: %+v, %v", i, f, news)
		}
	}
	if _, news := a.add(status{elapsed: time.Second, bytes: 1, highest: 1}); news {
		t.Error("a status that came late was taken")
	}
	if len(a.seconds) != 2 || a.seconds[1] != (transfer.DatagramSecond{Duration: time.Second, Sent: 40, Lost: 20, Bytes: 20000, Delay: 10 * time.Millisecond}) {
		t.Errorf("%+v", a.seconds)
	}
}

// TestSearchByFeedback has the sender follow the receiver, whichever of the two it is.
func TestSearchByFeedback(t *testing.T) {
	for _, d := range []transfer.Direction{transfer.Up, transfer.Down} {
		t.Run(string(d), func(t *testing.T) {
			t.Parallel()
			peer := NewPeer(serve(t, &Server{UDP: true}))
			defer peer.Close()
			peer.Ticket = NewCookie()
			spec := transfer.DatagramSpec{Direction: d, Bps: 60e6, Search: true, Time: 1500 * time.Millisecond}
			r, err := peer.RunDatagrams(t.Context(), spec, nil)
			if err != nil {
				t.Fatal(err)
			}
			// It began at 0.5 Mbit/s: more than that in the mean, it has climbed.
			if !r.Complete || len(r.Seconds) == 0 || r.Bps() < 2e6 || r.Bps() > 70e6 {
				t.Errorf("%.3g Mbit/s; %+v", r.Bps()/1e6, r.Seconds)
			}
			peer.Ticket = Cookie{}
			var refused *transfer.Unsupported
			if _, err := peer.RunDatagrams(t.Context(), spec, nil); !errors.As(err, &refused) || refused.Field != "Search" {
				t.Errorf("a stock iperf3 was asked for feedback: %v", err)
			}
		})
	}
}
