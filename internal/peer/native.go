package peer

import (
	"context"

	"github.com/fullpipe-net/fullpipe/internal/iperf3"
	"github.com/fullpipe-net/fullpipe/internal/probe"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// native is a fullpipe server. What its own protocol has no words for goes over
// iperf3's, on the same port, with a cookie that the key's holder was granted.
type native struct{ *probe.Client }

// RunDatagrams implements transfer.DatagramPeer.
func (n *native) RunDatagrams(ctx context.Context, spec transfer.DatagramSpec, each func(transfer.Interval)) (*transfer.DatagramResult, error) {
	if spec.Search && !n.Hello().Search {
		return nil, &transfer.Unsupported{Field: "Search", Why: "the fullpipe there is older and gives no feedback"}
	}
	far, err := n.granted(ctx)
	if err != nil {
		return nil, err
	}
	defer far.Close()
	return far.RunDatagrams(ctx, spec, each)
}

// RunBothDatagrams implements transfer.BothWaysDatagramPeer.
func (n *native) RunBothDatagrams(ctx context.Context, up, down transfer.DatagramSpec, each func(transfer.Direction, transfer.Interval)) (*transfer.DatagramResult, *transfer.DatagramResult, error) {
	far, err := n.granted(ctx)
	if err != nil {
		return nil, nil, err
	}
	defer far.Close()
	return far.RunBothDatagrams(ctx, up, down, each)
}

// granted is the server as iperf3's clients see it, with a cookie that it admits.
func (n *native) granted(ctx context.Context) (*iperf3.Peer, error) {
	cookie, address, err := n.Grant(ctx)
	if err != nil {
		return nil, err
	}
	far := iperf3.NewPeer(address)
	far.Ticket, far.Route = iperf3.Cookie(cookie), n.Route
	return far, nil
}
