package watch

import (
	"net/netip"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/segments"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/turns"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
	"github.com/fullpipe-net/fullpipe/internal/verdict/live"
)

// TestNameFillers lists the sockets of a host: of each the far end, payload, round trip and limiter. The first one has
// requests.
func TestNameFillers(t *testing.T) {
	const ms = time.Millisecond
	type socket struct {
		pid        int
		far        string
		up, down   int64
		rtt, least time.Duration
		limiter    verdict.Name // of the direction with more payload
	}
	const (
		near    = "192.0.2.1"
		far     = "198.51.100.7"
		another = "203.0.113.9"
		mb      = 1 << 20
	)
	requests := socket{1, far, 50_000, 100_000, 33 * ms, 6 * ms, verdict.Application}
	idlePath := socket{1, far, 50_000, 100_000, 7 * ms, 6 * ms, verdict.Application}
	iperf3 := socket{4012, far, 20 * mb, 0, 34 * ms, 6 * ms, verdict.Bottleneck}
	with := func(s socket, change func(*socket)) socket { change(&s); return s }
	for _, c := range []struct {
		name    string
		sockets []socket
		filler  int // PID; 0: none
		queue   time.Duration
	}{
		{"one upload", []socket{requests, iperf3}, 4012, 27 * ms},
		{"one upload that loses packets", []socket{requests,
			with(iperf3, func(s *socket) { s.limiter = verdict.Congestion })},
			4012, 27 * ms},
		{"this host's own queue", []socket{requests, with(iperf3, func(s *socket) { s.limiter = verdict.LocalQueue })},
			4012, 27 * ms},
		{"an upload whose limiter is not known", []socket{requests,
			with(iperf3, func(s *socket) { s.limiter = verdict.Unknown })}, 4012, 27 * ms},
		{"an upload that several things limit", []socket{requests,
			with(iperf3, func(s *socket) { s.limiter = verdict.Mixed })}, 4012, 27 * ms},
		{"an upload that has just begun", []socket{requests, with(iperf3, func(s *socket) { s.limiter = verdict.SlowStart })},
			4012, 27 * ms},
		{"one download", []socket{requests, {77, far, 100_000, 30 * mb, 30 * ms, 6 * ms, verdict.Bottleneck}}, 77, 27 * ms},
		{"a heavy and a light upload", []socket{requests, iperf3,
			with(iperf3, func(s *socket) { s.pid = 5; s.up = 2 * mb })}, 4012, 27 * ms},
		{"the upload knows the empty path", []socket{with(requests, func(s *socket) { s.least = 30 * ms }), iperf3}, 4012,
			27 * ms},
		{"a slow line", []socket{with(requests, func(s *socket) { s.rtt = 806 * ms }),
			with(iperf3, func(s *socket) { s.rtt = 790 * ms; s.up = mb })}, 4012, 784 * ms},
		{"an upload next to one to another host", []socket{requests, iperf3,
			with(iperf3, func(s *socket) { s.pid = 6; s.far = another; s.up = 90 * mb })}, 4012, 27 * ms},

		{"an empty path", []socket{idlePath, iperf3}, 0, 0},
		{"a queue without an upload of this host", []socket{requests}, 0, 0},
		{"an upload to another host", []socket{requests, with(iperf3, func(s *socket) { s.far = another })}, 0, 0},
		{"an upload that does not wait in the queue", []socket{requests, with(iperf3, func(s *socket) { s.rtt = 8 * ms })},
			0, 0},
		{"an upload limited by its program", []socket{requests,
			with(iperf3, func(s *socket) { s.limiter = verdict.Application })}, 0, 0},
		{"an upload limited by a window", []socket{requests,
			with(iperf3, func(s *socket) { s.limiter = verdict.ReceiverWindow })}, 0, 0},
		{"an upload limited by pacing", []socket{requests, with(iperf3, func(s *socket) { s.limiter = verdict.Pacing })},
			0, 0},
		{"a download whose limiter is not known", []socket{requests,
			{77, far, 100_000, 30 * mb, 30 * ms, 6 * ms, verdict.Unknown}}, 0, 0},
		{"both directions are full", []socket{requests, iperf3,
			{77, far, 100_000, 30 * mb, 30 * ms, 6 * ms, verdict.Bottleneck}}, 0, 0},
		{"three equal uploads", []socket{requests, iperf3, with(iperf3, func(s *socket) { s.pid = 5 }),
			with(iperf3, func(s *socket) { s.pid = 6 })}, 0, 0},
		{"other requests", []socket{requests, with(requests, func(s *socket) { s.pid = 9 })}, 0, 0},
		{"no round trip is known", []socket{with(requests, func(s *socket) { s.least = 0 }),
			with(iperf3, func(s *socket) { s.least = 0 })}, 0, 0},
		{"a long path without a queue", []socket{with(requests, func(s *socket) { s.rtt = 210 * ms; s.least = 200 * ms }),
			with(iperf3, func(s *socket) { s.rtt = 215 * ms; s.least = 200 * ms })}, 0, 0},
		{"scatter of a short path", []socket{with(requests, func(s *socket) { s.rtt = 3 * ms; s.least = ms / 5 }),
			with(iperf3, func(s *socket) { s.rtt = 3 * ms; s.least = ms / 5 })}, 0, 0},
		{"the transfer itself has turns", []socket{iperf3, requests}, 0, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, followed := range []bool{true, false} {
				v := &View{}
				for i, s := range c.sockets {
					conn := &Connection{Owner: Owner{PID: s.pid}}
					conn.Local = netip.AddrPortFrom(netip.MustParseAddr(near), uint16(40000+i))
					conn.Remote = netip.AddrPortFrom(netip.MustParseAddr(s.far), 443)
					conn.Sample = transfer.Sample{RTT: s.rtt, MinRTT: s.least}
					o := Observed{Connection: conn}
					up := Flow{Direction: transfer.Up, Bytes: s.up, Verdict: verdict.Verdict{Limiter: verdict.Application}}
					down := Flow{Direction: transfer.Down, Bytes: s.down, Verdict: up.Verdict}
					if s.up > s.down {
						up.Verdict.Limiter = s.limiter
					} else {
						down.Verdict.Limiter = s.limiter
					}
					o.Flows = []Flow{up, down}
					if i == 0 && followed {
						o.Turns = &segments.Requests{Summary: turns.Summary{Counts: turns.Counts{Count: 100}}}
					} else if i == 0 {
						o.Requests = live.Requests{Turns: 100}
					}
					if i > 0 && s.pid != 1 {
						v.neighbours = append(v.neighbours, o)
					} else {
						v.Connections = append(v.Connections, o)
					}
				}
				v.nameFillers()
				got := v.Connections[0].Filler
				switch {
				case got == nil && c.filler != 0:
					t.Errorf("followed %v: none named", followed)
				case got != nil && (got.Owner.PID != c.filler || got.Queue != c.queue):
					t.Errorf("followed %v: %d, %v", followed, got.Owner.PID, got.Queue)
				}
			}
		})
	}
}
