package iperf3

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// RunBothDatagrams implements transfer.BothWaysDatagramPeer with iperf3's --bidir, which
// servers know since 3.7.
func (p *Peer) RunBothDatagrams(ctx context.Context, up, down transfer.DatagramSpec, each func(transfer.Direction, transfer.Interval)) (*transfer.DatagramResult, *transfer.DatagramResult, error) {
	if err := checkDatagrams(up); err != nil {
		return nil, nil, err
	}
	other := down
	if other.Direction = up.Direction; other != up || up.Search {
		return nil, nil, &transfer.Unsupported{Field: "Bps", Why: "iperf3 sends the same datagrams at the same rate both ways"}
	}
	ctx, cancel := p.bound(ctx)
	defer cancel()
	c, _, err := p.begin(ctx)
	if err != nil {
		return nil, nil, err
	}
	defer c.conn.Close()
	wire := datagramParams(up)
	wire.Both = true
	if err := c.ask(ctx, wire); err != nil {
		return nil, nil, err
	}
	n := wire.Streams
	all, err := p.greetAll(ctx, c, up, 2*n)
	if err != nil {
		return nil, nil, err
	}
	sending, receiving := newFlows(up, all[:n]), newFlows(down, all[n:])
	defer sending.close()
	defer receiving.close()
	if err := c.awaitStart(ctx, wire); err != nil {
		return nil, nil, err
	}
	usage, started := startUsage(), time.Now()
	err = c.during(ctx, func(ctx context.Context) error {
		var errs [2]error
		var running sync.WaitGroup
		for i, f := range []*flows{sending, receiving} {
			running.Go(func() {
				errs[i] = f.carry(ctx, transfer.Only([]transfer.Direction{transfer.Up, transfer.Down}[i], each))
			})
		}
		running.Wait()
		return errors.Join(errs[:]...)
	})
	mine := resultsOf(usage, sending, receiving)
	a, b := sending.result(started, false), receiving.result(started, false)
	a.Spec, b.Spec = up, down
	a.CPU = usage.spent(mine)
	b.CPU = a.CPU
	if err != nil {
		c.hangUp()
		return a, b, err
	}
	far, err := c.finish(ctx, mine)
	if err != nil {
		return a, b, err
	}
	a.Complete, b.Complete = true, true
	a.FarCPU = toldCPU(far, a.CPU.Wall)
	b.FarCPU = a.FarCPU
	theirs := far
	theirs.Streams = far.Streams[:min(n, len(far.Streams))]
	receivedThere(a, theirs)
	return a, b, nil
}
