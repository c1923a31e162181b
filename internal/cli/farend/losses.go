package farend

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/pflag"

	"github.com/fullpipe-net/fullpipe/internal/bpf"
	"github.com/fullpipe-net/fullpipe/internal/cli/exit"
	"github.com/fullpipe-net/fullpipe/internal/drops"
	"github.com/fullpipe-net/fullpipe/internal/lost"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// Losses are the drops of this host during a command's transfers.
type Losses struct {
	watch  *drops.Watch // nil: not available
	err    error        // the reason
	counts bool         // the host's counters are read too
}

// WatchLosses follows this host's drops where the system and this process's privileges allow it.
func WatchLosses() *Losses {
	l := &Losses{counts: true}
	l.watch, l.err = drops.Open()
	return l
}

// WatchDatagrams is like WatchLosses for transfers by UDP.
func WatchDatagrams() *Losses {
	l := &Losses{counts: true}
	l.watch, l.err = drops.OpenUDP()
	return l
}

// DropsFlag is --drops of the commands that serve clients: "" is no.
type DropsFlag string

// The other values of --drops. Auto follows drops only where this user may.
const (
	dropsRequired DropsFlag = "yes"
	DropsAuto     DropsFlag = "auto"
)

// Add adds the flag.
func (d *DropsFlag) Add(fl *pflag.FlagSet) {
	fl.StringVar((*string)(d), "drops", "", "report to each client where this host dropped "+
		"packets of its tests (Linux; root or CAP_BPF and CAP_PERFMON); `MODE` auto: only if this "+
		"user may")
	fl.Lookup("drops").NoOptDefVal = string(dropsRequired)
}

// Check checks the value.
func (d DropsFlag) Check() error {
	if !slices.Contains([]DropsFlag{"", dropsRequired, DropsAuto}, d) {
		return exit.Usage("--drops", fmt.Sprintf("%q is no value of it", string(d)), "--drops, or --drops=auto")
	}
	return nil
}

// Watch follows this host's drops if the flag asks for it.
func (d DropsFlag) Watch() (*Losses, error) {
	if d == "" {
		return &Losses{}, nil
	}
	l := WatchLosses()
	if l.err != nil && d == dropsRequired {
		return nil, fmt.Errorf("--drops: %w", l.err)
	}
	return l, nil
}

// Close ends it. Nothing depends on it any more, so its error does not matter.
func (l *Losses) Close() { _ = l.watch.Close() }

// Begin begins a transfer of a client, as server.Config's Losses.
func (l *Losses) Begin() func(*transfer.End, bool) {
	counting := l.count()
	set := l.begin(counting)
	return func(e *transfer.End, sends bool) {
		counting.Stop()
		set(e, sends)
	}
}

func (l *Losses) count() *drops.Counting {
	if !l.counts {
		return nil
	}
	return drops.Count()
}

// begin returns what sets the losses of an end, after counting has stopped.
func (l *Losses) begin(counting *drops.Counting) func(*transfer.End, bool) {
	watched := l.watch.Begin()
	return func(e *transfer.End, sends bool) {
		if e != nil {
			e.Losses = watched(e, sends)
			e.DropCounters = counting.Moved(lost.TCP, sends)
			e.DropsNotPermitted = errors.As(l.err, new(*bpf.NotPermittedError))
		}
	}
}

// Peer returns a far end whose results also have this host's losses.
func (l *Losses) Peer(far transfer.Peer) transfer.Peer { return &watchedPeer{far, l} }

type watchedPeer struct {
	transfer.Peer
	losses *Losses
}

func (p *watchedPeer) Run(ctx context.Context, t transfer.Test,
	each func(transfer.Interval)) ([]transfer.Outcome, error) {
	counting := p.losses.count()
	set := p.losses.begin(counting)
	datagrams := p.losses.watch.BeginDatagrams()
	outcomes, err := p.Peer.Run(ctx, t, func(i transfer.Interval) {
		counting.Running(i.End)
		if each != nil {
			each(i)
		}
	})
	counting.Stop()
	for _, o := range outcomes {
		if o.TCP != nil {
			set(o.TCP.Near, o.TCP.Spec.Direction == transfer.Up)
		}
		if r := o.Datagrams; r != nil {
			r.Losses = datagrams(r)
			r.DropCounters = counting.Moved(lost.UDP, r.Spec.Direction == transfer.Up)
		}
	}
	return outcomes, err
}
