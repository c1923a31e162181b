package peer

import (
	"context"
	"errors"
	"sync"

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

// RunBoth implements transfer.BothWaysPeer with a second session for the way down.
func (n *native) RunBoth(ctx context.Context, up, down transfer.Spec, each func(transfer.Direction, transfer.Interval)) (*transfer.Result, *transfer.Result, error) {
	second, err := n.Far.Connect(ctx)
	if err != nil {
		return nil, nil, err
	}
	defer second.Close()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var results [2]*transfer.Result
	var errs [2]error
	var running sync.WaitGroup
	for i, far := range []*probe.Client{n.Client, second} {
		spec := [2]transfer.Spec{up, down}[i]
		running.Go(func() {
			if results[i], errs[i] = far.Run(ctx, spec, transfer.Only(spec.Direction, each)); errs[i] != nil {
				cancel(errs[i])
			}
		})
	}
	running.Wait()
	for i, other := range []int{1, 0} { // both directions' load is what it was beside
		if results[i] != nil && results[other] != nil && results[i].Latency == nil {
			results[i].Latency = results[other].Latency
		}
	}
	return results[0], results[1], errors.Join(errs[:]...)
}
