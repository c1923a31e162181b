package report

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/advice"
	"github.com/fullpipe-net/fullpipe/internal/changepoint"
	"github.com/fullpipe-net/fullpipe/internal/diagnose"
	"github.com/fullpipe-net/fullpipe/internal/recheck"
	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/tune"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
	"github.com/fullpipe-net/fullpipe/internal/verdict/compare"
	"github.com/fullpipe-net/fullpipe/internal/watch"
)

// Every document leaves this package with its sentences: nothing has to add them later.
func TestDocuments_HaveTheirSentences(t *testing.T) {
	judged := func() verdict.Verdict {
		return verdict.Verdict{Limiter: verdict.Congestion, Confidence: verdict.High,
			Evidence: []verdict.Evidence{{Limiter: verdict.Unknown, Code: verdict.NotSampled}}}
	}
	full := verdict.Verdict{Limiter: verdict.Bottleneck, Confidence: verdict.High}
	side := compare.Side{Goodputs: []float64{28e6, 28.1e6, 27.9e6}, Verdicts: []verdict.Verdict{full, full, full},
		MSS: 1386}
	wider := side
	wider.Goodputs = []float64{94e6, 94.1e6, 94.2e6}
	wider.MSS = 1448
	captured := func() *diagnose.Diagnosis {
		return &diagnose.Diagnosis{Record: &record.Diagnose{Connections: []record.CapturedConnection{{
			Directions: []record.CapturedDirection{{Verdict: judged(), Fix: advice.Fixes(judged(), advice.Facts{}),
				Prediction: &record.CapturedPrediction{}}}}}}}
	}
	for name, tt := range map[string]struct {
		doc  any
		want int
	}{
		"measure": {Direction(&transfer.Result{}, judged(), nil), 7},
		"udp":     {Datagrams(&transfer.DatagramResult{}, judged()), 1},
		"watch": {Watch(record.Header{}, "", &watch.View{Connections: []watch.Observed{{Connection: &watch.Connection{},
			Flows: []watch.Flow{{Verdict: judged()}}}}}), 7},
		"diagnose": {Diagnose(record.Header{}, captured()), 8},
		"tune": {Tune(record.Header{}, "", &tune.Result{Directions: []tune.Direction{{
			Before: tune.Measured{Verdict: judged(), Typical: &transfer.Result{}}}}}, nil, nil), 13},
		"compare": {ComparedDirection(transfer.Up, [2]string{}, [2]compare.Side{side, wider}), 2},
		"recheck": {RecheckEvent(record.RecheckEvent{Event: changepoint.Dipped, Metric: recheck.RTT, At: time.Unix(1, 0)},
			"far",
			nil), 1},
	} {
		encoded, err := json.Marshal(tt.doc)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		var tree any
		if err := json.Unmarshal(encoded, &tree); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if filled, empty := sentences(tree); filled != tt.want || empty != 0 {
			t.Errorf("%s: %d sentences, want %d; %d are empty: %s", name, filled, tt.want, empty, encoded)
		}
	}
}

// sentences counts the objects of a JSON tree that have to have a sentence, by whether they have it.
func sentences(tree any) (filled, empty int) {
	count := func(text any) {
		if text == nil || text == "" {
			empty++
			return
		}
		filled++
	}
	switch v := tree.(type) {
	case []any:
		for _, one := range v {
			f, e := sentences(one)
			filled += f
			empty += e
		}
	case map[string]any:
		if v["code"] != nil || v["action"] != nil || v["cause"] != nil && v["factor_low"] != nil || v["event"] != nil {
			count(v["text"])
		}
		if fix, ok := v["fix"].(string); ok {
			count(fix)
		}
		for _, one := range v {
			f, e := sentences(one)
			filled += f
			empty += e
		}
	}
	return filled, empty
}
