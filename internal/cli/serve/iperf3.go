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

// admitIperf3 lets a server hand its strangers to iperf3's protocol.
func admitIperf3(config *server.Config) *iperf3.Server {
	clients := &iperf3.Server{Sentence: text.Sentence, Report: func(r iperf3.Report) {
		e := server.Event{What: "iperf3", Client: r.From, Keyed: r.Keyed, Err: r.Err}
		if len(r.Outcomes) == 0 {
			config.Event(e)
		}
		for _, o := range r.Outcomes {
			e.Result = fromClient(o.TCP)
			config.Event(e)
		}
	}}
	config.Legacy = func(ctx context.Context, conn *net.TCPConn, preface probe.Preface, order int64, keyed bool) {
		clients.Handle(ctx, conn, iperf3.Cookie(preface), order, keyed)
	}
	return clients
}

// fromClient turns a result round: the server that saw it becomes the far end.
func fromClient(r *transfer.Result) *transfer.Result {
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
