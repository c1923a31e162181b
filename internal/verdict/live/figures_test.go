package live

import (
	"math/rand/v2"
	"path/filepath"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// The guards raise no alarm on recorded transfers, whose verdicts are right.
func TestNoFalseAlarms(t *testing.T) {
	files, err := filepath.Glob("testdata/*.json.gz")
	if err != nil {
		t.Fatal(err)
	}
	alarms := 0
	for _, name := range files {
		r := recorded(t, name)
		if v, figures := analyse(r, leastRTT(r.Sender()), how{}); len(verdict.Check(v, figures)) > 0 {
			t.Logf("%s: %+v of %+v", filepath.Base(name), verdict.Check(v, figures), figures)
			alarms++
		}
	}
	if 200*alarms > len(files) {
		t.Errorf("%d alarms in %d", alarms, len(files))
	}
}

// Samples drawn at random, consistent or not: what is named agrees with its figures.
func TestVerdictsAgreeWithTheirFigures(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	doubted := 0
	for range 300 {
		rtt := time.Duration(1+r.IntN(200)) * ms
		min, wnd, limited := time.Duration(1+r.IntN(300))*ms, int64(1000+r.IntN(1e6)), r.Float64()
		idle, lost := r.Float64()*float64(r.IntN(2)), r.Float64()*0.02*float64(r.IntN(2))
		result := steady(1e6+r.Float64()*1e8, rtt, func(i int, s, _ *transfer.Sample) {
			s.MinRTT, s.SendWnd = min, wnd
			s.ReceiveLimited = scale(s.At, limited)
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
		for _, least := range []time.Duration{leastRTT(result.Sender()), supportedRTT(result.Sender())} {
			again, figures := analyse(result, least, how{})
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
