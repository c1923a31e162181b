package live

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// requests returns samples, one each 50 ms, of a program with n requests in flight over a link of bps, each answered.
// Request sizes vary by 40 %. With a period the program writes by its own clock instead.
func requests(n int, size float64, rtt, period time.Duration, bps float64) *watchedDirection {
	type request struct {
		start, end, answered time.Duration
		size                 float64
	}
	var all []request
	r := rand.New(rand.NewPCG(1, 2))
	for at := time.Duration(0); at < 6*time.Second; {
		if i := len(all); period == 0 && i >= n {
			at = max(at, all[i-n].answered)
		}
		bytes := size * (0.6 + 0.8*r.Float64())
		took := time.Duration(bytes * 8 / bps * 1e9)
		all = append(all, request{at, at + took, at + took + rtt + 2*time.Millisecond, bytes})
		at += max(took, period)
	}
	w := &watchedDirection{Sends: true, Handshake: &transfer.Handshake{MSS: 1448}}
	for t := time.Second; t <= 6*time.Second; t += 50 * time.Millisecond {
		s := transfer.Sample{At: t, MinRTT: rtt, SendWnd: 8 << 20, Cwnd: 4 << 20,
			Have: transfer.HaveReceived | transfer.HaveAcked | transfer.HaveQueue | transfer.HaveNotSent |
				transfer.HaveMinRTT | transfer.HaveSendWnd | transfer.HaveCwnd}
		for _, q := range all {
			if t >= q.start {
				s.Queued += int64(q.size)
			}
			if t >= q.answered {
				s.Received += 60
			}
			s.Acked += int64(q.size * min(max(float64(t-rtt-q.start)/float64(q.end-q.start), 0), 1))
		}
		s.Queued -= s.Acked
		w.Samples = append(w.Samples, s)
	}
	return w
}

// TestPrograms_RequestsOfUnevenSizes: batches of some 100 kB, each answered, as from a Kafka producer. Requests
// that leave in one burst count as one block.
func TestPrograms_RequestsOfUnevenSizes(t *testing.T) {
	const ms = time.Millisecond
	for _, c := range []struct {
		n           int
		size        float64
		rtt, period time.Duration
		bps         float64
		want        string
	}{
		{1, 1e5, 150 * ms, 0, 1e9, verdict.RequestResponse},
		{1, 4e5, 200 * ms, 0, 200e6, verdict.RequestResponse},
		{2, 1e5, 200 * ms, 0, 50e6, verdict.RequestResponse},
		{3, 1e5, 300 * ms, 0, 50e6, verdict.ProgramWindow},
		{5, 1e5, 200 * ms, 0, 200e6, verdict.ProgramWindow},
		{5, 2.5e5, 300 * ms, 0, 1e9, verdict.RequestResponse},
		{8, 6e4, 300 * ms, 0, 1e9, verdict.RequestResponse},
		{0, 1e5, 200 * ms, 130 * ms, 200e6, ""},
		{0, 1e5, 330 * ms, 140 * ms, 200e6, ""},
		{0, 1e5, 70 * ms, 210 * ms, 200e6, ""},
	} {
		from := verdict.Verdict{Limiter: verdict.Sender, Shares: verdict.Shares{verdict.Sender: 1},
			Evidence: []verdict.Evidence{{Limiter: verdict.Sender, Code: verdict.NothingToSend}}}
		v := ownExchanges(requests(c.n, c.size, c.rtt, c.period, c.bps), from)
		if v.Subtype != c.want {
			t.Errorf("%d requests of %.0f bytes over %v, period %v: %s/%s %v", c.n, c.size, c.rtt, c.period, v.Limiter,
				v.Subtype, v.Evidence[0].Values)
		}
		complete(t, v)
	}
}
