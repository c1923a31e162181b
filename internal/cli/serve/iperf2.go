package serve

import (
	"cmp"
	"context"
	"fmt"
	"net"

	"github.com/fullpipe-net/fullpipe/internal/cli/console"
	"github.com/fullpipe-net/fullpipe/internal/cli/listener"
	"github.com/fullpipe-net/fullpipe/internal/iperf2"
	"github.com/fullpipe-net/fullpipe/internal/render/text"
	"github.com/fullpipe-net/fullpipe/internal/report"
	"github.com/fullpipe-net/fullpipe/internal/server"
	"github.com/fullpipe-net/fullpipe/internal/serverlog"
	"github.com/fullpipe-net/fullpipe/internal/socket"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
	"github.com/fullpipe-net/fullpipe/internal/verdict/live"
)

// defaultIperf2Address is the address of --iperf2 without a value.
const defaultIperf2Address = ":5001"

// serveIperf2 also serves iperf 2 clients, on a port of their own. wait waits for their end after ctx ends.
func (o *options) serveIperf2(ctx context.Context, log *eventLog, native *server.Server) (wait func(), err error) {
	s := &iperf2.Server{Turn: native.TryTurn, TrackConcurrent: native.Begin, Report: log.iperf2}
	o.limits.applyIperf2(s)
	l, err := socket.Listen(ctx, o.iperf2, socket.Options{})
	if err != nil {
		return nil, listener.Failure("--iperf2", o.iperf2, err)
	}
	at := l.Addr().String()
	udp, err := socket.ListenFlows(ctx, at)
	if err != nil {
		l.Close()
		return nil, listener.Failure("--iperf2", at+" (UDP)", err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.Serve(ctx, l, udp)
	}()
	if !log.quiet {
		log.events.Print(serverlog.Kind{Event: "iperf2-ready", Trusted: true}, func() string {
			return iperf2Ready(at, console.WantsJSON(log.cmd))
		})
	}
	return func() { <-done }, nil
}

// iperf2Ready returns the line that says where iperf 2 clients are served.
func iperf2Ready(at string, asJSON bool) string {
	if asJSON {
		return (&event{At: now(), Event: "iperf2-ready", Listen: at, Addresses: reachableAt(at, 0)}).object()
	}
	_, port, _ := net.SplitHostPort(at)
	return fmt.Sprintf("iperf 2 clients: iperf -c %s -p %s", listener.Reachable(at)[0], port)
}

// iperf2 prints a line about one connection or flow of an iperf 2 client.
func (l *eventLog) iperf2(r iperf2.Report) {
	if l.quiet {
		return
	}
	at := now()
	l.events.Print(serverlog.Kind{Event: "iperf2"}, func() string {
		e := newServeEvent(at, &server.Event{Kind: "iperf2", Client: r.From, Err: r.Err, Result: fromClientView(r.TCP)})
		switch {
		case r.TCP != nil:
			d := report.Direction(r.TCP, live.Judge(r.TCP), nil)
			e.Limiter = string(d.Limiter)
			e.Confidence = string(d.Confidence)
			if d.Limiter != verdict.Unknown { // its candidates are many: the receiver sees little of the sender
				e.verdict = text.Verdict(&d)
			}
		case r.Datagrams != nil:
			e.addDatagrams(r.Datagrams)
		}
		if console.WantsJSON(l.cmd) {
			return e.object()
		}
		return e.text()
	})
}

// addDatagrams sets the fields of a UDP flow.
func (e *event) addDatagrams(r *transfer.DatagramResult) {
	e.Direction = string(transfer.Up)
	e.Complete = &r.Complete
	e.Bytes = &r.Bytes
	if bps := r.Bps(); bps > 0 {
		e.GoodputBps = &bps
	}
	lost := r.Lost
	sent := cmp.Or(r.Sent, r.Received)
	jitter := r.Jitter.Seconds()
	e.Sent = &sent
	e.Lost = &lost
	e.JitterS = &jitter
}
