package serve

import (
	"context"
	"net"

	"github.com/fullpipe-net/fullpipe/internal/iperf3"
	"github.com/fullpipe-net/fullpipe/internal/probe"
	"github.com/fullpipe-net/fullpipe/internal/render/text"
	"github.com/fullpipe-net/fullpipe/internal/server"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// configureIperf3 makes a server pass unauthenticated clients to iperf3's protocol.
func configureIperf3(config *server.Config) *iperf3.Server {
	clients := &iperf3.Server{Sentence: text.Sentence, Report: func(r iperf3.Report) {
		e := server.Event{Kind: "iperf3", Client: r.From, Keyed: r.HasKey, Err: r.Err}
		if r.Result == nil && r.Err != nil {
			e.Kind = "refused" // no test began
		}
		if len(r.Outcomes) == 0 {
			config.Event(e)
		}
		for _, o := range r.Outcomes {
			e.Result = fromClientView(o.TCP)
			config.Event(e)
		}
	}}
	config.Iperf3 = func(ctx context.Context, conn *net.TCPConn, preface probe.Preface, order int64, keyed bool) {
		clients.Handle(ctx, conn, iperf3.Cookie(preface), order, keyed)
	}
	return clients
}

// fromClientView swaps the ends of a result: this server becomes the far end.
func fromClientView(r *transfer.Result) *transfer.Result {
	if r == nil {
		return nil
	}
	turned := *r
	turned.Near = r.Far
	turned.Far = r.Near
	turned.Spec.Near = r.Spec.Far
	turned.Spec.Far = r.Spec.Near
	turned.Spec.Direction = transfer.Up
	if r.Spec.Direction == transfer.Up {
		turned.Spec.Direction = transfer.Down
	}
	return &turned
}
