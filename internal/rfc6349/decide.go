package rfc6349

import "context"

// maxRuns is the maximum number of runs for a sign-off; from six on, the interval is the
// median's and needs no assumption about the noise.
const maxRuns = 8

// decide repeats the tests whose intervals leave the sign-off open.
func (t *tester) decide(ctx context.Context) error {
	reserve := t.cfg.Frames.expected() * 3 / 10
	for range maxRuns {
		repeated := false
		spent := func() bool {
			return t.cfg.Budget > 0 && t.elapsed()+t.plan.length > t.cfg.Budget-min(reserve, t.cfg.Budget*2/5)
		}
		for i := range t.out.Directions {
			d := &t.out.Directions[i]
			for _, kind := range []Kind{Full, Several} {
				if spent() || !t.open(d, kind) {
					continue
				}
				repeated = true
				if err := t.try(ctx, d, d.Find(kind), Statement{Code: RepeatingRun}); err != nil {
					return err
				}
			}
		}
		if t.canRunBoth() && !spent() {
			up, down := t.upAndDown()
			if t.open(up, Both) || t.open(down, Both) {
				repeated = true
				t.report(nil, Statement{Code: RepeatingBoth})
				if err := t.together(ctx, up, down, up.Find(Both), down.Find(Both)); err != nil {
					return err
				}
			}
		}
		if !repeated {
			return nil
		}
	}
	return nil
}

// open reports whether more runs could decide a test.
func (t *tester) open(d *Direction, kind Kind) bool {
	test := d.Find(kind)
	if d.CommittedBps == 0 || test == nil || test.Skipped.Code != "" || len(test.Runs) == 0 ||
		len(test.Runs) >= maxRuns || t.narrow(d) {
		return false
	}
	if kind == Both {
		return t.judgeThroughput(d, kind).Verdict == Inconclusive
	}
	_, required := t.due(d, kind)
	if test.Goodput.Low >= required {
		return false
	}
	return test.Goodput.High >= required || len(test.Runs) < minRunsToFail
}
