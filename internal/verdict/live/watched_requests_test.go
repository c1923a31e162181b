package live

import (
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// TestSamples_Requests gives each state of a connection to the samples, 50 ms apart.
func TestSamples_Requests(t *testing.T) {
	const (
		ms      = time.Millisecond
		every   = 50 * ms
		segment = 1448
		samples = 100
	)
	type state struct {
		sample transfer.Sample
		queues Queues
	}
	idle := state{sample: transfer.Sample{SendWnd: 65535}}
	peer := idle
	peer.queues = Queues{SinceSent: 20 * ms, SinceData: 60 * ms}
	program := idle
	program.queues = Queues{SinceSent: 60 * ms, SinceData: 20 * ms}
	timer := peer
	timer.sample.Timeouts = 1
	timer.queues.Unacked = 200
	closed := peer
	closed.sample.SendWnd = 0
	closed.sample.NotSent = 500
	closed.queues.Unacked = 500
	flying := peer
	flying.queues.Unacked = 200
	for _, c := range []struct {
		name               string
		states             []state // in turn, each for a number of samples
		length             int     // of a state, samples
		out, in            int64   // data segments between two samples
		sent, received     int64   // bytes of each
		turns              int64
		want               func(r *Requests) time.Duration
		least, most        time.Duration
		timers             int64
		longest            time.Duration
		retransmittedEvery int64 // segments
	}{
		{name: "the peer thinks", states: []state{peer}, length: 1, out: 2, in: 2, sent: 200, received: 400, turns: 198,
			want: func(r *Requests) time.Duration { return r.Peer }, least: 4950 * ms, most: 4950 * ms},
		{name: "this program thinks", states: []state{program}, length: 1, out: 1, in: 1, sent: 200, received: 400,
			turns: 99, want: func(r *Requests) time.Duration { return r.Program }, least: 4950 * ms, most: 4950 * ms},
		{name: "long responses", states: []state{peer}, length: 1, out: 1, in: 20, sent: 200, received: 1448, turns: 99,
			want: func(r *Requests) time.Duration { return r.Peer }, least: 4950 * ms, most: 4950 * ms},
		{name: "timer", states: []state{timer, peer}, length: 5, out: 1, in: 1, sent: 200, received: 400, turns: 99,
			want: func(r *Requests) time.Duration { return r.Timer }, least: 2400 * ms, most: 2500 * ms, timers: 10,
			longest: 250 * ms},
		{name: "zero window", states: []state{closed, peer}, length: 2, out: 1, in: 1, sent: 200, received: 400, turns: 99,
			want: func(r *Requests) time.Duration { return r.ZeroWindow }, least: 2400 * ms, most: 2500 * ms},
		{name: "in flight", states: []state{flying}, length: 1, out: 1, in: 1, sent: 200, received: 400, turns: 99,
			want: func(r *Requests) time.Duration { return r.InFlight }, least: 4950 * ms, most: 4950 * ms},
		{name: "both sent in one tick", states: []state{idle}, length: 1, out: 3, in: 3, sent: 200, received: 400,
			turns: 297, want: func(r *Requests) time.Duration { return r.Peer + r.Program }},
		{name: "upload and download of many segments", states: []state{peer}, length: 1, out: 20, in: 20, sent: 1400,
			received: 1400, want: func(r *Requests) time.Duration { return r.Timer }},
		{name: "nothing arrives", states: []state{peer}, length: 1, out: 20, sent: 1400,
			want: func(r *Requests) time.Duration { return r.Timer }},
		{name: "retransmissions are no turns", states: []state{peer}, length: 1, out: 2, in: 5, sent: 200, received: 400,
			retransmittedEvery: 1, turns: 99, want: func(r *Requests) time.Duration { return r.Timer }},
	} {
		t.Run(c.name, func(t *testing.T) {
			var w Samples
			for i := range int64(samples) {
				of := c.states[int(i)/c.length%len(c.states)]
				of.sample.At = time.Duration(i) * every
				of.sample.Acked = i * c.out * c.sent
				of.sample.Received = i * c.in * c.received
				of.sample.Retransmitted = i * c.retransmittedEvery
				of.queues.DataSent = i * c.out
				of.queues.DataReceived = i * c.in
				w.Add(&of.sample, of.queues, time.Minute)
			}
			r := w.Requests(segment)
			if d := c.want(&r); r.Turns != c.turns || d < c.least || d > c.most || r.Timers != c.timers ||
				r.LongestTimer != c.longest {
				t.Errorf("%+v", r)
			}
		})
	}
	short := Samples{Of: make([]transfer.Sample, 5), Queues: make([]Queues, 5)}
	if r := short.Requests(segment); r != (Requests{}) {
		t.Errorf("five samples: %+v", r)
	}
}
