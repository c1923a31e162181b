package peer

import (
	"context"

	"github.com/fullpipe-net/fullpipe/internal/iperf3"
	"github.com/fullpipe-net/fullpipe/internal/probe"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// native is a fullpipe server. Tests that its protocol does not support use iperf3's protocol on the same port,
// with a cookie granted for the key.
type native struct{ *probe.Client }

// Check implements transfer.Peer.
func (n *native) Check(t transfer.Test) error {
	_, udp, err := t.Specs()
	switch {
	case err != nil:
		return err
	case len(udp) == 0:
		return n.Client.Check(t)
	case udp[0].Search && !n.Hello().Search:
		return &transfer.Unsupported{Field: "Search", Reason: "the fullpipe there is older and gives no feedback"}
	}
	return iperf3.CheckDatagrams(true, udp...)
}

// Run implements transfer.Peer.
func (n *native) Run(ctx context.Context, t transfer.Test, each func(transfer.Interval)) ([]transfer.Outcome, error) {
	if err := n.Check(t); err != nil {
		return nil, err
	}
	if t.Legs[0].TCP != nil {
		return n.Client.Run(ctx, t, each)
	}
	far, err := n.openIperf3(ctx)
	if err != nil {
		return nil, err
	}
	defer far.Close()
	return far.Run(ctx, t, each)
}

// openIperf3 returns the server as an iperf3 peer with a granted cookie.
func (n *native) openIperf3(ctx context.Context) (*iperf3.Peer, error) {
	cookie, address, err := n.Grant(ctx)
	if err != nil {
		return nil, err
	}
	far := iperf3.NewPeer(address)
	far.Ticket = iperf3.Cookie(cookie)
	far.Route = n.Route
	return far, nil
}
