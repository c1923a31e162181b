// Package tune finds what makes a path's transfers faster: it measures the path and the baseline, searches windows and
// other remedies by socket options, which change nothing on either host, and proves the gain.
package tune

import (
	"context"
	"errors"
	"net/netip"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/advice"
	"github.com/fullpipe-net/fullpipe/internal/host"
	"github.com/fullpipe-net/fullpipe/internal/path"
	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/search"
	"github.com/fullpipe-net/fullpipe/internal/stats"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// Config has the direction, the goal and the budget of a tuning.
type Config struct {
	Peer       transfer.Peer
	Directions []transfer.Direction
	// Budget bounds each direction's time; 0: the largest of 30 s, the time of sending 900 segments (375 on modems),
	// 150 round trips and, where the path loses, 20 transfers of 20 round trips or more; at most a tenth of an exhaustive
	// sweep. It is doubled once where it stays open whether something helps.
	Budget   time.Duration
	MaxBytes int64 // payload each direction may move; 0: by the same rule
	Goal     Goal  // ""; Throughput
	// Near and Far are the systems whose ways to send count; nil: those that the ends report.
	Near, Far *advice.System
	// FileSize is a transfer whose time before and after is of interest; 0: none.
	FileSize int64
	Seed     uint64 // of the order of the trials
	// Second is another connection to the far end, for the second flow of the goal Fair.
	Second transfer.Peer
	// Echo asks the idle path to a host for single round trips, about rtt long each, in
	// about the given time, and for its MTU; nil: the transfers' own have to do.
	Echo func(ctx context.Context, to netip.AddrPort, rtt, spend time.Duration) (path.RoundTrips, path.MTU)
	// Persist has changes of this host that Apply kept hold after a restart; nil: they end with it.
	Persist func(ctx context.Context, changes []host.Change) ([]host.Did, error)
	// AcceptLikely has Apply keep a likely change that its proof neither shows nor contradicts.
	AcceptLikely bool
	// Late says at the end whether the lab that carries the path was too late; nil: none, or not known.
	Late     func() bool
	Progress func(Progress) // called from Run's goroutine; nil: none
}

// Progress is what the loop is doing now.
type Progress struct {
	Direction transfer.Direction
	Setup     Setup
	Purpose   search.Purpose
	Done      float64 // share of the direction's budget that is spent
	BestBps   float64 // so far; 0: nothing yet
}

// Result is what the loop found.
type Result struct {
	Near, Far  *transfer.End // as they are today; nil: cannot be seen
	Directions []Direction
	Elapsed    time.Duration
	Bytes      int64 // payload moved, all trials together
}

// Direction is one direction's result. A field that was not reached is its zero value.
type Direction struct {
	Direction transfer.Direction
	Goal      Goal
	// Sender and Receiver are the ends' systems.
	Sender, Receiver advice.System
	Path             Path
	Before           Measured
	After            *Measured // nil: nothing to change was found
	Trials           []Trial
	Verdict          search.Verdict
	Decision         Decision
	// Shown says that the window was shown to be the smallest that suffices, not only better than today's.
	Shown    bool
	Clipped  bool // larger windows were asked for and not given
	Chosen   *Chosen
	Remedies []Remedy
	Gain     *stats.Interval    // after over before, 95 %
	Delay    *record.TuneDelay  // with the goal Latency
	Others   *record.TuneOthers // with the goal Fair
	File     *record.TuneFile
	Open     *Open // decision that more time would make; nil: none
	// Disturbed is what kept the measurement from telling about the path; nil: nothing did.
	Disturbed *record.TuneDisturbed
	Reason    Statement // of the verdict
	Warnings  []Statement
	// Interrupted says that the budget was not used to its end.
	Interrupted bool
}

// Measured is what repeated transfers of one kind gave.
type Measured struct {
	Typical  *transfer.Result // of the runs with the commonest limiter the one next to the middle
	Verdict  verdict.Verdict  // of that run
	Goodputs []float64        // of each run, without slow start
	Interval stats.Interval   // 95 %
	// Retransmits is the median share of the bytes sent that were retransmitted; nil: not known.
	Retransmits *float64
}

// Chosen is the setup that the loop ends with. Buffers are what to ask a socket for; 0 is automatic.
type Chosen struct {
	Setup
	SendBuffer    int
	ReceiveBuffer int
	Clamp         int
}

// Helps says whether the loop has an answer: something was shown to help, or there is
// nothing to gain. It is false where something limits and nothing was shown to help.
func (r *Result) Helps() bool {
	noRemedyHelped := false
	for i := range r.Directions {
		d := &r.Directions[i]
		if d.Chosen != nil {
			return true
		}
		full := d.Before.Verdict.Limiter == verdict.Bottleneck && d.Goal == Throughput
		noRemedyHelped = noRemedyHelped || !full && (d.Verdict != search.NoChange || len(d.Remedies) > 0)
	}
	return !noRemedyHelped
}

// Run tunes each direction. With an error, or when ctx ends, the Result has everything found until then.
func Run(ctx context.Context, cfg Config) (*Result, error) {
	start := time.Now()
	result := &Result{}
	if cfg.Goal == Fair && cfg.Second == nil {
		return result, errors.New("tuning for fair takes a second connection to the far end")
	}
	var failed error
	for _, d := range cfg.Directions {
		l := newLoop(cfg, d)
		failed = l.run(ctx)
		l.conclude(failed != nil)
		if r := l.out.Before.Typical; r != nil {
			result.Near = r.Near
			result.Far = r.Far
		}
		result.Bytes += l.budget.spent.Bytes
		if len(l.out.Trials) > 0 {
			result.Directions = append(result.Directions, l.out)
		}
		if failed != nil {
			break
		}
	}
	result.Elapsed = time.Since(start)
	return result, failed
}
