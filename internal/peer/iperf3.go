package peer

import (
	"context"
	"io"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/iperf3"
	"github.com/fullpipe-net/fullpipe/internal/probe"
	"github.com/fullpipe-net/fullpipe/internal/socket"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// iperf3ProbeTimeout limits the first exchange with an unknown server.
const iperf3ProbeTimeout = 10 * time.Second

// probeIperf3 checks whether an iperf3 server listens at address. It sends probe.Marker, which an iperf3 server accepts
// as a cookie. The first test of the returned peer uses this connection.
func probeIperf3(ctx context.Context, address string, by socket.Route) (transfer.Peer, bool) {
	ctx, cancel := context.WithTimeout(ctx, iperf3ProbeTimeout)
	defer cancel()
	conn, err := socket.Dial(ctx, address, socket.Options{Route: by})
	if err != nil {
		return nil, false
	}
	stop := context.AfterFunc(ctx, func() { conn.SetDeadline(time.Unix(1, 0)) })
	var first [1]byte
	_, err = conn.Write(probe.Marker[:])
	if err == nil {
		_, err = io.ReadFull(conn, first[:])
	}
	if !stop() || err != nil || first[0] != probe.AnswerIperf3 {
		conn.Close()
		return nil, false
	}
	far := iperf3.NewPeer(address)
	far.Route = by
	far.Adopt(conn, iperf3.Cookie(probe.Marker))
	return far, true
}
