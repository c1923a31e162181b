package report_test

import (
	"bytes"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/render/text"
	"github.com/fullpipe-net/fullpipe/internal/report"
	"github.com/fullpipe-net/fullpipe/internal/segments"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/turns"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
	"github.com/fullpipe-net/fullpipe/internal/verdict/live"
	"github.com/fullpipe-net/fullpipe/internal/watch"
)

// requests returns turns of a client, 33 ms each; every tenth request is retransmitted after 230 ms.
func requests(n int) *segments.Requests {
	const ms = 1_000_000
	var t turns.Tracker
	t.Reset(2000)
	t.AtEnd(true, 33*ms)
	p := turns.Packet{Flags: turns.ACK, Window: 65535}
	for i := range n {
		at := int64(i) * 500 * ms
		p.FromClient = true
		p.Payload = 200
		p.At = at
		t.Add(&p)
		if i%10 == 9 {
			p.At += 230 * ms
			p.Repair = turns.TailLossProbe
			t.Add(&p)
			p.Repair = 0
		}
		answer := turns.Packet{At: p.At + 33*ms, Flags: turns.ACK, Seq: p.Ack, Ack: p.Seq + 200, Payload: 400, Window: 65535}
		t.Add(&answer)
		p.Seq += 200
		p.Ack += 400
	}
	return &segments.Requests{Summary: t.Summary, Client: true}
}

// TestWatch_RequestsAreTheAnswer reports on a client whose send direction has losses.
func TestWatch_RequestsAreTheAnswer(t *testing.T) {
	view := func(followed bool, filler *watch.Filler) *watch.View {
		c := &watch.Connection{Owner: watch.Owner{PID: 7, Program: "client"}}
		c.Local = netip.MustParseAddrPort("10.0.0.1:40000")
		c.Remote = netip.MustParseAddrPort("10.0.0.2:80")
		c.Sample.RTT = 33 * time.Millisecond
		o := watch.Observed{Connection: c, Filler: filler, Flows: []watch.Flow{{Direction: transfer.Up, Bytes: 50_000,
			Verdict: verdict.Verdict{Limiter: verdict.Application, Confidence: verdict.Medium,
				Shares: verdict.Shares{verdict.Application: 1}}}}}
		if followed {
			o.Turns = requests(201)
			o.Flows[0].Verdict.Limiter = verdict.Congestion
		} else {
			o.Requests = live.Requests{Span: 5 * time.Second, Turns: 200, Timer: time.Second, Timers: 4,
				LongestTimer: 300 * time.Millisecond, Peer: 2 * time.Second}
		}
		return &watch.View{Length: 100 * time.Second, Connections: []watch.Observed{o}}
	}
	iperf3 := &watch.Connection{Owner: watch.Owner{PID: 4012, Program: "iperf3"}}
	iperf3.Local = netip.MustParseAddrPort("10.0.0.1:40001")
	iperf3.Remote = netip.MustParseAddrPort("10.0.0.2:5201")
	filler := &watch.Filler{Connection: iperf3, Direction: transfer.Up, Queue: 27 * time.Millisecond}
	for name, c := range map[string]struct {
		view *watch.View
		want []string
	}{
		"stalls": {view(true, nil), []string{"client[7]: median 33 ms of 200 requests, p99 263 ms.",
			"20 waits for retransmissions took 4.6 s in all, mostly for a retransmission timer (tail-loss probe).",
			"The peer owed 0 of these packets, this host 20.", "2 requests/s; this host is the client"}},
		"another program's queue": {view(true, filler), []string{"median 33 ms of 200 requests",
			"iperf3[4012], which sends to 10.0.0.2:5201, fills this path's queue: 27 ms of each request.",
			"Of the median, 27 ms is a queue on the path."}},
		"sampled": {view(false, nil), []string{"client[7]: at most 40 requests/s.",
			"20 % a retransmission timer had expired (4 times, the longest 300 ms)", "40 % the peer had not answered",
			"only states of the connections were sampled"}},
		"sampled, another program's queue": {view(false, filler), []string{"at most 40 requests/s",
			"iperf3[4012], which sends to 10.0.0.2:5201, fills this path's queue: 27 ms of each request."}},
	} {
		doc := report.Watch(record.Header{}, "client", c.view)
		if !doc.RequestsLead() {
			t.Errorf("%s: the requests do not lead", name)
		}
		var out bytes.Buffer
		text.Watch(&out, doc)
		got := strings.Join(strings.Fields(out.String()), " ")
		for _, want := range c.want {
			if !strings.Contains(got, want) {
				t.Errorf("%s: %q is not in:\n%s", name, want, out.String())
			}
		}
		for _, never := range []string{"application", "congestion"} {
			if strings.Contains(got, never) {
				t.Errorf("%s: %q is in:\n%s", name, never, out.String())
			}
		}
	}
}
