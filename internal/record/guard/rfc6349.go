package guard

import (
	"math"

	"github.com/fullpipe-net/fullpipe/internal/record"
)

// RFC6349 checks one direction of `rfc6349`. A test's rate above its bottleneck leaves neither of the two certain: the
// rate is removed with its interval.
func RFC6349(d *record.RFC6349Direction) {
	checkLine(d)
	for i := range d.Tests {
		checkTest(&d.Tests[i], d)
	}
	for i := range d.Frames {
		f := &d.Frames[i]
		check(testRelations, scope{"frame_bps": f.Bps, "frames_bps": f.FramesPerSec * 8 * float64(f.FrameBytes)},
			drop{"frames": func() {
				f.Bps = 0
				f.FramesPerSec = 0
			}})
	}
	if !d.Bottleneck.IsZero() && !d.Bottleneck.AtLeast {
		checkCapacity(d)
	}
	for i := range d.Criteria {
		checkCriterion(&d.Criteria[i], d)
	}
}

// checkCapacity checks the rates of tests and criteria against the bottleneck.
func checkCapacity(d *record.RFC6349Direction) {
	path := scope{"capacity_bps": d.Bottleneck.Bps}
	for i := range d.Criteria {
		if c := &d.Criteria[i]; c.Unit == "bps" {
			checkInterval(path, &c.CI95)
		}
	}
	for i := range d.Tests {
		t := &d.Tests[i]
		checkInterval(path, &t.CI95Bps)
		s := scope{"capacity_bps": d.Bottleneck.Bps}
		s.add("goodput_bps", t.GoodputBps)
		check(loopRelations, s, drop{"capacity_bps": func() {
			t.GoodputBps = nil
			t.CI95Bps = nil
		}})
	}
}

// figuresContradict is why a criterion is undecided.
const figuresContradict record.RFC6349Code = "figures-contradict"

// checkCriterion checks the figures of a requirement against its test and its verdict. A contradicted one is undecided.
func checkCriterion(c *record.RFC6349Criterion, d *record.RFC6349Direction) {
	if c.Measured == nil {
		return
	}
	undecided := func() {
		c.Measured = nil
		c.CI95 = nil
		c.Verdict = record.RFC6349Inconclusive
		c.Reason = record.RFC6349Statement{Code: figuresContradict}
	}
	s := scope{"due": c.Due, "required": c.Required, "goodput_bps": *c.Measured}
	if c.CI95 != nil {
		s["interval_low_bps"] = c.CI95[0]
		s["interval_high_bps"] = c.CI95[1]
	}
	kind := record.RFC6349Kind(c.Name)
	isMost := c.Name == "buffer-delay"
	passes := c.Verdict == record.RFC6349Pass
	switch {
	case !passes && (c.Verdict != record.RFC6349Fail || kind == "both"): // that one is judged by both directions' sum
	case passes == isMost:
		s["verdict_low"] = *c.Measured
		s["verdict_high"] = c.Required
	default:
		s["verdict_low"] = c.Required
		s["verdict_high"] = *c.Measured
	}
	if test := d.Find(kind); test != nil && test.GoodputBps != nil {
		s["test_bps"] = *test.GoodputBps
	} else if test != nil {
		undecided()
		return
	} else if c.Name == "bandwidth" {
		s["test_bps"] = d.Bottleneck.Bps
	}
	check(testRelations, s, drop{"interval_bps": func() { c.CI95 = nil }, "criterion": undecided})
}

// checkLine checks the bottleneck and the values that follow from it and from the committed rate.
func checkLine(d *record.RFC6349Direction) {
	b := &d.Bottleneck
	s := scope{"max_tcp_bps": d.MaxTCPBps, "max_beside_acks_bps": d.MaxBidirectionalBps, "bdp_bytes": d.BDPBytes,
		"reference_bps": math.Max(b.Bps, d.CommittedBps), "bottleneck_bps": b.Bps, "bottleneck_low_bps": b.Range[0],
		"bottleneck_high_bps": b.Range[1]}
	if !b.AtLeast {
		s["product_bytes"] = b.Bps / 8 * d.RTT.Seconds()
	}
	check(testRelations, s, drop{"range_bps": func() { b.Range = [2]float64{} },
		"max_tcp_bps":         func() { d.MaxTCPBps = 0 },
		"max_beside_acks_bps": func() { d.MaxBidirectionalBps = 0 },
		"bdp_bytes":           func() { d.BDPBytes = 0 }})
}

// checkTest checks a test's rates against its runs, and each run.
func checkTest(t *record.RFC6349Test, d *record.RFC6349Direction) {
	s := scope{"achievable_bps": t.AchievableBps, "line_bps": math.Max(d.Bottleneck.Bps, d.MaxTCPBps)}
	s.add("goodput_bps", t.GoodputBps)
	if t.CI95Bps != nil {
		s["interval_low_bps"] = t.CI95Bps[0]
		s["interval_high_bps"] = t.CI95Bps[1]
	}
	var rates []float64
	for i := range t.Runs {
		rates = append(rates, t.Runs[i].SteadyBps)
	}
	addRuns(s, rates)
	check(testRelations, s, drop{"interval_bps": func() { t.CI95Bps = nil },
		"achievable_bps": func() { t.AchievableBps = 0 },
		"goodput_bps": func() {
			t.GoodputBps = nil
			t.CI95Bps = nil
		}})
	for i := range t.Runs {
		checkRun(&t.Runs[i], t, d)
	}
}

// checkRun checks one run. Rates that contradict its bytes are removed together with the test's.
func checkRun(r *record.RFC6349Run, t *record.RFC6349Test, d *record.RFC6349Direction) {
	length := r.Duration.Seconds()
	s := scope{"whole_bps": r.GoodputBps, "duration_s": length, "in_flight_bytes": float64(r.InFlightBytes),
		"flight_bytes": r.SteadyBps / 8 * d.RTT.Seconds(), "ideal_s": r.TimeRatio * r.Ideal.Seconds(),
		"ideal_bps": r.SteadyRatio * r.SteadyBps, "max_bps": d.MaxTCPBps,
		"steady_bytes": r.SteadyBps / 8 * (r.Duration - r.Startup).Seconds()}
	if t.Kind == "both" {
		s["max_bps"] = d.MaxBidirectionalBps
	}
	carries(s, float64(r.Bytes))
	s.addTime("rtt_min_s", d.RTT)
	s.addTime("rtt_mean_s", r.RTTMean)
	if r.BufferDelay != nil {
		s["delayed_s"] = d.RTT.Seconds() * (1 + *r.BufferDelay)
	}
	if c := r.RFC6349Sender; c != nil {
		s["sent_bytes"] = float64(c.SentBytes)
		s["retransmitted_bytes"] = float64(c.RetransmittedBytes)
		s["once_bytes"] = float64(c.SentBytes - c.RetransmittedBytes)
		s["efficient_bytes"] = c.Efficiency * float64(c.SentBytes)
	}
	check(testRelations, s, drop{
		"run": func() {
			r.GoodputBps = 0
			r.SteadyBps = 0
			t.GoodputBps = nil
			t.CI95Bps = nil
		},
		"transfer_time_ratio": func() { r.TimeRatio = 0 },
		"steady_time_ratio":   func() { r.SteadyRatio = 0 },
		"sender":              func() { r.RFC6349Sender = nil },
		"buffer_delay":        func() { r.BufferDelay = nil },
		"round_trips": func() {
			r.RTTMean = 0
			r.BufferDelay = nil
		},
		"in_flight_bytes": func() { r.InFlightBytes = 0 }})
}
