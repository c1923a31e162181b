package watch

import (
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
	"github.com/fullpipe-net/fullpipe/internal/verdict/live"
)

// moved returns a connection of a process for five seconds, sampled each 50 ms. at returns the payload that has moved.
func moved(port uint16, pid int, d transfer.Direction, limiter verdict.Name, at func(time.Duration) int64) Observed {
	c := &Connection{Owner: Owner{PID: pid}, moves: &moves{}}
	c.Local = netip.AddrPortFrom(netip.MustParseAddr("198.18.0.1"), port)
	c.Remote = netip.AddrPortFrom(netip.MustParseAddr("198.18.0.2"), port)
	for t := time.Duration(0); t <= 5*time.Second; t += 50 * time.Millisecond {
		s := transfer.Sample{At: t + time.Duration(port)*10*time.Microsecond}
		q := live.Queues{}
		if d == transfer.Up { // a part is on its way
			s.Acked = at(t) - 20_000
			q.Unacked = 20_000
		} else {
			s.Received = at(t)
		}
		c.window.Add(&s, q, time.Minute)
	}
	return Observed{Connection: c, Flows: []Flow{{Direction: d, Sampled: true, Bytes: at(5 * time.Second),
		Verdict: verdict.Verdict{Limiter: limiter}}}}
}

// TestView_Limiting checks which connection of a program limits: of a proxy, the leg that does not wait for the other.
func TestView_Limiting(t *testing.T) {
	const up, down = transfer.Up, transfer.Down
	// steady moves data at a rate that varies as draw says. buffer is the most in the proxy's own buffer.
	drawn := func(draw uint64) func(bps, buffer float64) func(time.Duration) int64 {
		r := rand.New(rand.NewPCG(draw, 53))
		moved := []float64{0}
		for range 101 {
			moved = append(moved, moved[len(moved)-1]+0.05*(0.5+r.Float64()))
		}
		return func(bps, buffer float64) func(time.Duration) int64 {
			return func(t time.Duration) int64 {
				step := t / (50 * time.Millisecond)
				return int64(bps/8*moved[step] - buffer*float64(step%7)/7)
			}
		}
	}
	steady := drawn(1)
	other := drawn(2)
	stepped := func(bps, on float64) func(time.Duration) int64 { // the same in 5 s, and uneven
		return func(t time.Duration) int64 { return int64(bps / 8 * max(t.Seconds()-on, 0) * 5 / (5 - on)) }
	}
	sum := func(a, b func(time.Duration) int64) func(time.Duration) int64 {
		return func(t time.Duration) int64 { return a(t) + b(t) }
	}
	child := func(o Observed, parent int) Observed {
		o.Owner.Parent = parent
		return o
	}
	for _, c := range []struct {
		name string
		of   []Observed
		want int // the connection
		legs int // directions that are joined
	}{
		{"a proxy behind a full line", []Observed{moved(1, 8, up, verdict.Application, steady(20e6, 30e3)),
			moved(2, 8, down, verdict.Bottleneck, steady(20e6, 0))}, 1, 2},
		{"a proxy whose server cannot be seen", []Observed{moved(1, 8, up, verdict.Application, steady(3e6, 10e3)),
			moved(2, 8, down, verdict.Unknown, steady(3e6, 0))}, 1, 2},
		{"a proxy with a full line to its client", []Observed{
			moved(1, 8, down, verdict.ReceiverApplication, steady(90e6, 0)),
			moved(2, 8, up, verdict.Bottleneck, steady(90e6, 50e3))}, 1, 2},
		{"a slow proxy", []Observed{moved(1, 8, up, verdict.Application, steady(90e6, 50e3)),
			moved(2, 8, down, verdict.ReceiverApplication, steady(90e6, 0))}, 0, 2},
		{"two clients of one proxy", []Observed{moved(1, 8, up, verdict.Application, steady(12e6, 30e3)),
			moved(2, 8, up, verdict.Application, other(9e6, 30e3)),
			moved(3, 8, down, verdict.Unknown, other(9e6, 0)),
			moved(4, 8, down, verdict.Bottleneck, steady(12e6, 0))}, 3, 4},
		{"a tunnel with two clients", []Observed{moved(1, 8, down, verdict.Bottleneck, sum(steady(12e6, 0), other(9e6, 0))),
			moved(2, 8, up, verdict.Application, steady(12e6, 30e3)),
			moved(3, 8, up, verdict.Application, other(9e6, 30e3))}, 0, 3},
		{"a client of a tunnel with two", []Observed{moved(2, 8, up, verdict.Application, steady(12e6, 30e3)),
			moved(1, 8, down, verdict.Bottleneck, sum(steady(12e6, 0), other(9e6, 0))),
			moved(3, 8, up, verdict.Application, other(9e6, 30e3))}, 1, 3},
		{"a worker and its parent", []Observed{child(moved(1, 9, up, verdict.Application, steady(20e6, 30e3)), 8),
			moved(2, 8, down, verdict.Bottleneck, steady(20e6, 0))}, 1, 2},
		{"a transfer of its own at the same rate", []Observed{moved(1, 8, up, verdict.Application, steady(20e6, 0)),
			moved(2, 8, down, verdict.Unknown, other(20e6, 0))}, 0, 0},
		{"two full links of one rate", []Observed{moved(1, 8, up, verdict.Bottleneck, steady(20e6, 0)),
			moved(2, 8, down, verdict.Bottleneck, other(20e6, 0))}, 0, 0},
		{"a proxy that stops and goes", []Observed{moved(1, 8, up, verdict.Application, stepped(20e6, 3)),
			moved(2, 8, down, verdict.Bottleneck, stepped(20e6, 3))}, 1, 2},
		{"another program's connection", []Observed{moved(1, 8, up, verdict.Application, steady(20e6, 0)),
			moved(2, 9, down, verdict.Bottleneck, steady(20e6, 0))}, 0, 0},
		{"a twentieth more", []Observed{moved(1, 8, up, verdict.Application, steady(20e6, 0)),
			moved(2, 8, down, verdict.Bottleneck, steady(21e6, 0))}, 0, 0},
		{"as many bytes, at other times", []Observed{moved(1, 8, up, verdict.Application, steady(20e6, 0)),
			moved(2, 8, down, verdict.Bottleneck, stepped(20e6, 1))}, 0, 0},
		{"two clients behind one line", []Observed{moved(1, 8, up, verdict.Application, steady(20e6, 0)),
			moved(2, 8, up, verdict.Bottleneck, steady(20e6, 0))}, 0, 0},
		{"a message now and then", []Observed{moved(1, 8, up, verdict.Application, steady(50e3, 0)),
			moved(2, 8, down, verdict.Unknown, steady(50e3, 0))}, 0, 0},
	} {
		v := &View{Connections: c.of}
		v.joinLegs()
		legs := 0
		for i := range c.of {
			if c.of[i].Flows[0].Leg != nil {
				legs++
			}
		}
		if got, _ := v.Limiting(); got != c.want || legs != c.legs {
			t.Errorf("%s: connection %d, %d directions joined; want %d, %d", c.name, got, legs, c.want, c.legs)
		}
	}
}

// TestView_LimitingRequests checks that a received flow that only responds to what this end sends is limited as its
// requests are.
func TestView_LimitingRequests(t *testing.T) {
	for _, c := range []struct {
		awaited             bool
		responses, requests verdict.Name
		want                transfer.Direction
	}{
		{true, verdict.Unknown, verdict.NagleDelayedAck, transfer.Up},
		{true, verdict.Unknown, verdict.Application, transfer.Up},
		{true, verdict.Application, verdict.NagleDelayedAck, transfer.Up},
		{true, verdict.Application, verdict.Application, transfer.Down},
		{true, verdict.Unknown, verdict.Unknown, transfer.Down},
		{false, verdict.Unknown, verdict.Application, transfer.Down}, // the messages of a program that receives in bulk
		{false, verdict.Bottleneck, verdict.NagleDelayedAck, transfer.Down},
	} {
		v := &View{Connections: []Observed{{Connection: &Connection{}, Flows: []Flow{
			{Direction: transfer.Down, Awaited: c.awaited, Verdict: verdict.Verdict{Limiter: c.responses}},
			{Direction: transfer.Up, Verdict: verdict.Verdict{Limiter: c.requests}}}}}}
		_, flow := v.Limiting()
		if got := v.Connections[0].Flows[flow].Direction; got != c.want {
			t.Errorf("%+v: %s", c, got)
		}
	}
	if c, f := (&View{}).Limiting(); c != 0 || f != 0 {
		t.Error(c, f)
	}
}
