package live

import (
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// No guard raises an alarm on right verdicts in more than one of 200: on recorded transfers, and on what was
// measured of each until some moment, seen at both ends and at the sender alone.
func TestNoFalseAlarms(t *testing.T) {
	files, err := filepath.Glob("testdata/*.json.gz")
	if err != nil {
		t.Fatal(err)
	}
	right, alarms := 0, map[verdict.Figure]int{}
	for _, name := range files {
		truth, _, _ := strings.Cut(filepath.Base(name), "_")
		for _, part := range []float64{1, 0.85, 0.7, 0.55, 0.4} {
			for _, alone := range []bool{false, true} {
				r := until(recorded(t, name), part)
				if alone {
					r.Near, r.Far = seen(r.Sender(), r.Near), seen(r.Sender(), r.Far)
				}
				v, figures := analyse(r, minRTTOf(r.Sender()), scope{})
				if v.Limiter != verdict.Name(truth) {
					continue
				}
				right++
				for _, c := range verdict.Check(v, figures) {
					t.Logf("%s until %v, alone %t: %+v of %+v", filepath.Base(name), part, alone, c, figures)
					alarms[c.Figure]++
				}
			}
		}
	}
	t.Logf("%d right verdicts, alarms %v", right, alarms)
	if right < 600 {
		t.Errorf("only %d right verdicts", right)
	}
	for figure, n := range alarms {
		if 200*n > right {
			t.Errorf("%s: %d alarms in %d", figure, n, right)
		}
	}
}

// until is the transfer as it was at a part of its time.
func until(r *transfer.Result, part float64) *transfer.Result {
	for _, end := range []*transfer.End{r.Near, r.Far} {
		for i := range end.Streams {
			s := &end.Streams[i]
			s.Last = s.First + scale(s.Last-s.First, part)
			n := firstFrom(s.Samples, s.Last)
			s.Samples = s.Samples[:max(min(n+1, len(s.Samples)), 1)]
		}
	}
	return r
}

// TestJudge_AgreesWithFigures checks that the verdict on random samples, consistent or not, agrees with its figures.
func TestJudge_AgreesWithFigures(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 0))
	doubted := 0
	for range 300 {
		rtt := time.Duration(1+r.IntN(200)) * ms
		min, wnd, limited := time.Duration(1+r.IntN(300))*ms, int64(1000+r.IntN(1e6)), r.Float64()
		idle, lost := r.Float64()*float64(r.IntN(2)), r.Float64()*0.02*float64(r.IntN(2))
		result := steady(1e6+r.Float64()*1e8, rtt, func(i int, s, _ *transfer.Sample) {
			s.MinRTT, s.SendWnd = min, wnd
			s.RwndLimited = scale(s.At, limited)
			s.Busy = scale(s.At, 1-idle)
			s.RetransmittedBytes = int64(lost * float64(s.Sent))
			s.Retransmitted = s.RetransmittedBytes / 1448
		})
		v := Judge(result)
		complete(t, v)
		if v.Limiter == verdict.Unknown {
			doubted++
			continue
		}
		named := false
		for _, least := range []time.Duration{minRTTOf(result.Sender()), supportedRTT(result.Sender())} {
			again, figures := analyse(result, least, scope{})
			named = named || again.Limiter == v.Limiter && len(verdict.Check(again, figures)) == 0
		}
		if !named {
			t.Errorf("%s, %s: contradicts its figures, %v", v.Limiter, v.Confidence, v.Evidence)
		}
	}
	t.Logf("%d of 300 were given up", doubted)
	if doubted == 0 || doubted > 290 {
		t.Errorf("%d of 300 impossible series were given up", doubted)
	}
}
