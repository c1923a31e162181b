package guard

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/advice"
	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/units"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// piece is a piece of evidence with figures that agree with those of soundCaptured. Each fault replaces some of them.
type piece struct {
	code   verdict.Code
	values verdict.Values
	faults map[string]verdict.Values // by the relation that the values break, "left>right"
	left   map[string][]string       // the values that are removed; nil: the whole piece
}

var pieces = []piece{
	{code: verdict.CapturedFullLink,
		values: verdict.Values{"time_ratio": 0.9, "best_bps": 8e6, "rtt_s": 0.05, "rtt_base_s": 0.04},
		faults: map[string]verdict.Values{
			"rtt_base_s>rtt_s":         {"rtt_base_s": 0.12},
			"best_bytes>carried_bytes": {"best_bps": 24e6},
			"time_ratio>1":             {"time_ratio": 2.7, "best_bps": 2e6},
		}},
	{code: verdict.CapturedLoss,
		values: verdict.Values{"retransmitted_segments": 50, "segments": 100, "outside": 2, "blocks": 4, "agree": 2,
			"runs": 3, "missing_bytes": 6e6, "queued_bytes": 3e4, "granted_bytes": 3e4, "from_s": 1, "to_s": 2, "wait_s": 1,
			"total_s": 2,
			"idle_s":  1, "paused_s": 1, "awaited_s": 1, "stalled_s": 5, "retransmitted_ratio": 0.5, "closed_ratio": 0.5,
			"missing_ratio": 0.5,
			"full_ratio":    0.5, "room_ratio": 0.5, "idle_ratio": 0.5, "receiver_ratio": 0.5, "send_buffer_ratio": 0.5,
			"out_of_order_ratio": 0.5, "best_ratio": 0.9},
		faults: map[string]verdict.Values{
			"retransmitted_segments>segments":  {"retransmitted_segments": 150},
			"outside>blocks":                   {"outside": 6},
			"agree>runs":                       {"agree": 6},
			"missing_bytes>bytes_with_missing": {"missing_bytes": 18e6},
			"from_s>to_s":                      {"from_s": 3},
			"wait_s>total_s":                   {"wait_s": 3},
			"idle_s>total_s":                   {"idle_s": 3},
			"paused_s>total_s":                 {"paused_s": 3},
			"awaited_s>total_s":                {"awaited_s": 3},
			"stalled_s>connection_s":           {"stalled_s": 15},
			"retransmitted_ratio>1":            {"retransmitted_ratio": 1.5},
			"missing_ratio>1":                  {"missing_ratio": 1.5},
			"closed_ratio>1":                   {"closed_ratio": 1.5},
			"full_ratio>1":                     {"full_ratio": 1.5},
			"room_ratio>1":                     {"room_ratio": 1.5},
			"idle_ratio>1":                     {"idle_ratio": 1.5},
			"receiver_ratio>1":                 {"receiver_ratio": 1.5},
			"send_buffer_ratio>1":              {"send_buffer_ratio": 1.5},
			"out_of_order_ratio>1":             {"out_of_order_ratio": 1.5},
			"best_ratio>1":                     {"best_ratio": 2.7},
		}},
	{code: verdict.CapturedProgramWindow,
		values: verdict.Values{"time_ratio": 0.95, "rtt_s": 0.04, "allows_bps": 9e6, "twice_bps": 16e6,
			"eightfold_bps": 30e6, "link_least_bps": 9e6},
		faults: map[string]verdict.Values{
			"rtt_s>0":                    {"rtt_s": 0},
			"stream_bps>allows_most_bps": {"allows_bps": 3e6},
			"allows_bps>twice_bps":       {"allows_bps": 27e6},
			"goodput_bps>twice_bps":      {"twice_bps": 16e6 / 3, "allows_bps": 5e6, "time_ratio": 0.5},
			"twice_bps>eightfold_bps":    {"twice_bps": 48e6},
			"stream_bps>link_least_bps":  {"link_least_bps": 3e6},
		},
		left: map[string][]string{
			"allows_bps>twice_bps":      {"twice_bps", "eightfold_bps"},
			"goodput_bps>twice_bps":     {"twice_bps", "eightfold_bps"},
			"twice_bps>eightfold_bps":   {"eightfold_bps"},
			"stream_bps>link_least_bps": {"link_least_bps"},
		}},
	{code: verdict.CapturedWaitsSomewhere, values: verdict.Values{"rtt_base_s": 0.04},
		faults: map[string]verdict.Values{"rtt_base_s>0": {"rtt_base_s": 0}}},
	{code: verdict.LossBelowBest, values: verdict.Values{"steady_bps": 8e6, "best_bps": 9e6},
		faults: map[string]verdict.Values{"steady_bps>best_bps": {"steady_bps": 24e6}}},
	{code: verdict.CwndFull,
		values: verdict.Values{"steady_bps": 8e6, "best_bps": 9e6, "link_least_bps": 9e6, "path_bps": 9e6},
		faults: map[string]verdict.Values{
			"steady_bps>path_bps":     {"steady_bps": 24e6},
			"best_bps>path_bps":       {"best_bps": 27e6},
			"link_least_bps>path_bps": {"link_least_bps": 27e6},
		},
		left: map[string][]string{"link_least_bps>path_bps": {"link_least_bps"}}},
	{code: verdict.CapturedExchanges, values: verdict.Values{"rtt_s": 0.04, "exchanges": 90, "block_bytes": 1e5},
		faults: map[string]verdict.Values{"exchanged_bytes>carried_bytes": {"exchanges": 270}}},
}

// soundCaptured returns a direction of 10 MB in 10 s whose verdict has two pieces of evidence.
func soundCaptured(e verdict.Evidence) *record.CapturedDirection {
	return &record.CapturedDirection{Bytes: 10e6, ShownBytes: 10e6, DurationS: 10, GoodputBps: new(8e6),
		RTTMinS: new(0.04), RTTMaxS: new(0.06), Prediction: &record.CapturedPrediction{LowBps: 9e6, HighBps: 12e6},
		Verdict: verdict.Verdict{Limiter: verdict.Application, Confidence: verdict.High,
			Evidence: []verdict.Evidence{e, {Limiter: verdict.Sender, Code: verdict.CapturedIdle}}}}
}

// without returns a table without one relation.
func without(relations []relation, name string) []relation {
	return slices.DeleteFunc(slices.Clone(relations), func(r relation) bool { return r.left+">"+r.right == name })
}

func TestEvidenceRelations_EachRemovesItsFigures(t *testing.T) {
	table := evidenceRelations
	defer func() { evidenceRelations = table }()
	tested := map[string]bool{}
	for _, p := range pieces {
		sound := verdict.Evidence{Limiter: verdict.Application, Code: p.code, Values: p.values}
		if d := soundCaptured(sound); true {
			if Captured(d, 10); d.Confidence != verdict.High || !reflect.DeepEqual(d, soundCaptured(sound)) {
				t.Fatalf("%s: %v, %s confidence", p.code, d.Evidence, d.Confidence)
			}
		}
		for name, fault := range p.faults {
			tested[name] = true
			broken := verdict.Evidence{Limiter: verdict.Application, Code: p.code, Values: merged(p.values, fault)}
			d := soundCaptured(broken)
			Captured(d, 10)
			want := soundCaptured(broken)
			want.Confidence = verdict.Medium
			removed := verdict.Evidence{Limiter: verdict.Unknown, Code: verdict.FiguresRemoved,
				Values: verdict.Values{"figures": 1}}
			if values := p.left[name]; values == nil { // the cause in the verdict's sentence
				want.Evidence[0] = removed
			} else {
				want.Evidence = append(want.Evidence, removed)
				for _, key := range values {
					delete(want.Evidence[0].Values, key)
				}
			}
			if !reflect.DeepEqual(d, want) {
				t.Errorf("%s, %s: %s confidence, %v", p.code, name, d.Confidence, d.Evidence)
			}
			evidenceRelations = without(table, name)
			d = soundCaptured(verdict.Evidence{Limiter: verdict.Application, Code: p.code, Values: merged(p.values, fault)})
			if Captured(d, 10); d.Confidence != verdict.High {
				t.Errorf("%s: another relation than %s is broken as well: %v", p.code, name, d.Evidence)
			}
			evidenceRelations = table
		}
	}
	for _, r := range table {
		if name := r.left + ">" + r.right; !tested[name] {
			t.Errorf("%s is not tested", name)
		}
	}
}

func merged(a, b verdict.Values) verdict.Values {
	all := verdict.Values{}
	for _, values := range []verdict.Values{a, b} {
		for key, value := range values {
			all[key] = value
		}
	}
	return all
}

func TestDirectionRelations_EachRemovesItsFigures(t *testing.T) {
	table := directionRelations
	defer func() { directionRelations = table }()
	captured := func() *record.CapturedDirection {
		d := soundCaptured(verdict.Evidence{Code: verdict.CapturedIdle})
		d.Fix = []advice.Fix{{Expected: &advice.Expected{LowBps: 9e6, HighBps: 12e6}}}
		return d
	}
	measured := func() *record.Direction {
		return &record.Direction{Bytes: new(int64(10e6)), DurationS: new(10.0), GoodputBps: new(8e6),
			SteadyGoodputBps: new(8e6), Startup: &record.Startup{DurationS: 1}, RTTMin: ms(40), RTTMean: ms(50),
			RTTLoaded: ms(50), Latency: &record.Latency{LoadedS: new(0.05), LoadedP95S: new(0.06),
				LoadedLargestS: new(0.07)},
			Intervals: []record.Interval{{EndS: 5, Bytes: 5e6, GoodputBps: 8e6}},
			Verdict:   verdict.Verdict{Limiter: verdict.Bottleneck, Confidence: verdict.High}}
	}
	watched := func() *record.WatchedDirection {
		return &record.WatchedDirection{GoodputBps: 8e6, RTTMin: ms(40), RTT: ms(50),
			Verdict: verdict.Verdict{Limiter: verdict.Bottleneck, Confidence: verdict.High}}
	}
	for name, change := range map[string]struct {
		captured func(d *record.CapturedDirection, gone bool) // scales a figure, or removes what the relation removes
		measured func(d *record.Direction, gone bool)
		watched  func(d *record.WatchedDirection, gone bool)
	}{
		"goodput_bps>carried_bps": {measured: func(d *record.Direction, gone bool) {
			d.GoodputBps = scaled(d.GoodputBps, gone)
		}},
		"steady_bytes>carried_bytes": {measured: func(d *record.Direction, gone bool) {
			d.SteadyGoodputBps = scaled(d.SteadyGoodputBps, gone)
		}},
		"rtt_min_s>rtt_mean_s": {measured: func(d *record.Direction, gone bool) {
			d.RTTMean = unless(gone, ms(50)/3)
		}},
		"rtt_min_s>rtt_loaded_s": {measured: func(d *record.Direction, gone bool) {
			d.RTTLoaded = unless(gone, ms(50)/3)
		}},
		"rtt_min_s>rtt_max_s": {captured: func(d *record.CapturedDirection, gone bool) {
			d.RTTMaxS = unless(gone, new(0.06/3))
		}},
		"rtt_min_s>rtt_s": {watched: func(d *record.WatchedDirection, gone bool) { d.RTT = unless(gone, ms(50)/3) }},
		"latency_loaded_s>latency_p95_s": {measured: func(d *record.Direction, gone bool) {
			d.Latency.LoadedS = new(0.15)
			if gone {
				d.Latency = nil
			}
		}},
		"latency_p95_s>latency_largest_s": {measured: func(d *record.Direction, gone bool) {
			d.Latency.LoadedP95S = new(0.18)
			if gone {
				d.Latency = nil
			}
		}},
		"interval_bytes>carried_bytes": {measured: func(d *record.Direction, gone bool) {
			d.Intervals = []record.Interval{{EndS: 5, Bytes: 15e6, GoodputBps: 24e6}}
			if gone {
				d.Intervals = nil
			}
		}},
		"interval_bps>interval_carried_bps": {measured: func(d *record.Direction, gone bool) {
			d.Intervals = []record.Interval{{EndS: 5, Bytes: 5e6, GoodputBps: 24e6}}
			if gone {
				d.Intervals = nil
			}
		}},
		"goodput_bps>prediction_low_bps": {captured: func(d *record.CapturedDirection, gone bool) {
			d.Prediction.LowBps /= 3
			if gone {
				d.Prediction = nil
			}
		}},
		"prediction_low_bps>prediction_high_bps": {captured: func(d *record.CapturedDirection, gone bool) {
			d.Prediction.LowBps *= 3
			if gone {
				d.Prediction = nil
			}
		}},
		"goodput_bps>expected_low_bps": {captured: func(d *record.CapturedDirection, gone bool) {
			d.Fix[0].Expected.LowBps /= 3
			if gone {
				d.Fix[0].Expected = nil
			}
		}},
		"expected_low_bps>expected_high_bps": {captured: func(d *record.CapturedDirection, gone bool) {
			d.Fix[0].Expected.LowBps *= 3
			if gone {
				d.Fix[0].Expected = nil
			}
		}},
	} {
		for _, relations := range [][]relation{table, without(table, name)} {
			directionRelations = relations
			acts := len(relations) == len(table)
			var got, want any
			var confidence *verdict.Confidence
			switch {
			case change.captured != nil:
				d, w := captured(), captured()
				change.captured(d, false)
				change.captured(w, acts)
				Captured(d, 10)
				got, want, confidence = d, w, &d.Confidence
				lowered(&w.Verdict, acts)
			case change.watched != nil:
				d, w := watched(), watched()
				change.watched(d, false)
				change.watched(w, acts)
				Watched(d)
				got, want, confidence = d, w, &d.Confidence
				lowered(&w.Verdict, acts)
			default:
				d, w := measured(), measured()
				change.measured(d, false)
				change.measured(w, acts)
				Direction(d)
				got, want, confidence = d, w, &d.Confidence
				lowered(&w.Verdict, acts)
			}
			if !reflect.DeepEqual(got, want) {
				t.Errorf("%s, in the table: %t: %s confidence, %+v", name, acts, *confidence, got)
			}
			if len(table)-len(without(table, name)) != 1 {
				t.Errorf("%s is not in the table once", name)
			}
		}
	}
}

// lowered changes a verdict as a removed figure does.
func lowered(v *verdict.Verdict, removed bool) {
	if removed {
		v.Confidence = verdict.Medium
		v.Evidence = append(v.Evidence, verdict.Evidence{Limiter: verdict.Unknown, Code: verdict.FiguresRemoved,
			Values: verdict.Values{"figures": 1}})
	}
}

// scaled returns three times a figure, nil where it is gone.
func scaled(figure *float64, gone bool) *float64 { return unless(gone, new(3**figure)) }

func unless[T *float64 | units.Duration](gone bool, figure T) (none T) {
	if gone {
		return none
	}
	return figure
}

func ms(n time.Duration) units.Duration { return units.Duration(n * time.Millisecond) }
