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
	cookie, address, err := n.Grant(ctx)
	if err != nil {
		return nil, err
	}
	far := iperf3.NewPeer(address)
	defer far.Close()
	far.Ticket, far.Route = iperf3.Cookie(cookie), n.Route
	return far.RunDatagrams(ctx, spec, each)
}
