package rfc6349

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/model"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// bothTimeFactor is the factor by which these runs are longer: the acknowledgements of each transfer
// queue behind the other's data, so the rates settle slowly.
const bothTimeFactor = 2

// both runs the two directions at the same time. Acknowledgements that wait behind the
// other direction's data come in bursts, so a window that suffices alone is too small
// now: automatic ones are taken where they fill the line alone, else three BDPs.
func (t *tester) both(ctx context.Context) error {
	if len(t.out.Directions) < 2 {
		return nil
	}
	up, down := t.upAndDown()
	possible := t.canRunBoth()
	tests := [2]Test{{Kind: Both, Connections: 1}, {Kind: Both, Connections: 1}}
	for i, d := range []*Direction{up, down} {
		other := []*Direction{down, up}[i]
		tests[i].Direction = d.Direction
		tests[i].Window, tests[i].Share = t.ample(d)
		p := &t.out.Path
		tests[i].AchievableBps = min(t.achievable(d, &tests[i]), model.GoodputBesideAcks(d.Bottleneck.Bps,
			t.tcpOf(other.Bottleneck.Bps), p.MSS, p.Headers))
		if !possible {
			tests[i].Skipped.Code = OneWayAtATime
		}
	}
	defer func() {
		up.Tests = append(up.Tests, tests[0])
		down.Tests = append(down.Tests, tests[1])
	}()
	for i := range t.plan.repeats {
		if !possible || tests[0].Skipped.Code != "" {
			return nil
		}
		if t.budgetSpent() {
			if i == 0 {
				tests[0].Skipped.Code = BudgetSpent
				tests[1].Skipped.Code = BudgetSpent
			}
			return nil
		}
		t.report(nil, Statement{Code: RunningBoth, Values: t.turn(i)})
		if err := t.together(ctx, up, down, &tests[0], &tests[1]); err != nil {
			return err
		}
	}
	return nil
}

// upAndDown are the two directions of a test of both.
func (t *tester) upAndDown() (up, down *Direction) {
	up = &t.out.Directions[0]
	down = &t.out.Directions[1]
	if up.Direction != transfer.Up {
		up, down = down, up
	}
	return up, down
}

// ample is the window for both directions at once; 0 is automatic.
func (t *tester) ample(d *Direction) (window int, ofBDP float64) {
	if automatic := d.Find(Automatic); automatic != nil && automatic.Typical() != nil &&
		automatic.Typical().SteadyBps >= 0.95*t.mostTCP(d) {
		return 0, 0
	}
	window = model.Window(3*d.BDPBytes, t.out.Path.MSS)
	return window, share(window, d.BDPBytes)
}

// together adds one run to each direction's test.
func (t *tester) together(ctx context.Context, up, down *Direction, upTest, downTest *Test) error {
	tests := [2]*Test{upTest, downTest}
	upSpec, why := t.spec(up, upTest)
	downSpec, whyDown := t.spec(down, downTest)
	upSpec.Time = bothTimeFactor * upSpec.Time
	downSpec.Time = bothTimeFactor * downSpec.Time
	intervals := map[transfer.Direction][]transfer.Interval{}
	var mu sync.Mutex // guards intervals
	each := func(i transfer.Interval) {
		mu.Lock()
		defer mu.Unlock()
		intervals[i.Direction] = append(intervals[i.Direction], i)
	}
	start := time.Now()
	var a, b *transfer.Result
	err := error(&transfer.Unsupported{Field: "windows", Reason: why + whyDown})
	if why == "" && whyDown == "" {
		a, b, err = transfer.RunBoth(ctx, t.cfg.Peer, upSpec, downSpec, each)
	}
	var refused *transfer.Unsupported
	if errors.As(err, &refused) && (tests[0].Window > 0 || tests[1].Window > 0) {
		// iperf3 has one size for all buffers: use automatic sizing instead.
		for i := range tests {
			tests[i].Window = 0
			tests[i].Share = 0
		}
		upSpec, _ = t.spec(up, upTest)
		downSpec, _ = t.spec(down, downTest)
		upSpec.Time = bothTimeFactor * upSpec.Time
		downSpec.Time = bothTimeFactor * downSpec.Time
		a, b, err = transfer.RunBoth(ctx, t.cfg.Peer, upSpec, downSpec, each)
	}
	if errors.As(err, &refused) {
		tests[0].Skipped = Statement{Code: Refused, Cause: refused.Error()}
		tests[1].Skipped = tests[0].Skipped
		return nil
	}
	mu.Lock()
	defer mu.Unlock()
	for i, r := range []*transfer.Result{a, b} {
		if r == nil {
			return err
		}
		if problem := t.account(r, time.Since(start)); problem != nil {
			return errors.Join(err, fmt.Errorf("both directions at once: %w", problem))
		}
		d := []*Direction{up, down}[i]
		add(tests[i], t.newRun(d, tests[i], r, intervals[d.Direction]), t.rtt())
	}
	return err
}
