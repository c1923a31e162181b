package recheck

import (
	"bytes"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/changepoint"
	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/testenv/must"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/units"
)

// usual returns a typical result of a path, with a little noise.
func usual(rng *rand.Rand, at time.Time) Result {
	one := func(name string) Direction {
		return Direction{Name: name, GoodputBps: 1e8 * math.Exp(0.02*rng.NormFloat64()),
			RTTMin: 20*time.Millisecond + time.Duration(rng.IntN(100))*time.Microsecond, Limiter: "bottleneck",
			MTU: "1500 bytes", Handshake: "window scale, SACK, timestamps"}
	}
	return Result{At: at, FarKernel: "Linux 6.1", Directions: []Direction{one("up"), one("down")}}
}

// TestAdd_ReportsEachChangedMetric changes one metric after twenty visits. Add reports it once, in its direction, and
// words after one re-test.
func TestAdd_ReportsEachChangedMetric(t *testing.T) {
	down := func(r *Result) *Direction { return &r.Directions[1] }
	for _, c := range []struct {
		metric    string
		direction string
		change    func(*Result)
		within    time.Duration
	}{
		{Goodput, "down", func(r *Result) { down(r).GoodputBps /= 2 }, 30 * time.Minute},
		{RTT, "down", func(r *Result) { down(r).RTTMin += 11 * time.Millisecond }, 30 * time.Minute},
		{MTU, "down", func(r *Result) { down(r).MTU = "1400 bytes" }, 4 * time.Minute},
		{Handshake, "down", func(r *Result) { down(r).Handshake = "no window scale, SACK, timestamps" },
			4 * time.Minute},
		{FarKernel, "", func(r *Result) { r.FarKernel = "Linux 6.18" }, 4 * time.Minute},
		{Limiter, "down", func(r *Result) { down(r).Limiter = "receiver-window" }, 36 * time.Hour},
		{"", "", func(r *Result) { down(r).RTTMin += 400 * time.Microsecond }, 0},
	} {
		p, rng := &Detector{}, rand.New(rand.NewPCG(1, 1))
		at := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
		var events []record.RecheckEvent
		changed := time.Time{}
		for n := range 34 {
			r := usual(rng, at)
			if n >= 20 {
				if changed.IsZero() {
					changed = at
				}
				c.change(&r)
			}
			events = append(events, p.Add(r)...)
			for again, names := p.Wants(); len(names) > 0; again, names = p.Wants() {
				r := usual(rng, again)
				r.Retest = true
				c.change(&r)
				if len(names) == 1 && names[0] == "down" {
					r.Directions = r.Directions[1:]
				}
				events = append(events, p.Add(r)...)
			}
			at = at.Add(6 * time.Hour)
			if before := p.NotBefore(); at.Before(before) {
				at = before
			}
		}
		if c.metric == "" {
			if len(events) > 0 {
				t.Errorf("%+v", events)
			}
			continue
		}
		if len(events) == 0 || events[0].Metric != c.metric || events[0].Direction != c.direction ||
			events[0].At.Sub(changed) > c.within {
			t.Errorf("%s: %+v", c.metric, events)
			continue
		}
		dips, changes := 0, 0
		for _, e := range events {
			if e.Metric != c.metric {
				t.Errorf("%s: %+v", c.metric, e)
			}
			switch e.Event {
			case changepoint.Dipped, Rise:
				dips++
			case changepoint.Changed:
				changes++
			}
		}
		if changes != 1 || dips > 1 {
			t.Errorf("%s: %d dips, %d changes", c.metric, dips, changes)
		}
	}
}

func TestResultOfARecord(t *testing.T) {
	bps, took, yes := 9e7, 3.5, true
	bytes := int64(33e6)
	doc := &record.Measure{Far: &record.Host{Kernel: "Linux 6.1"}, Directions: []record.Direction{{
		Direction: transfer.Up, GoodputBps: &bps, RTTMin: units.Duration(20 * time.Millisecond),
		Bytes: &bytes, SACK: &yes, Timestamps: &yes,
		PathMTUBytes: 1500}}}
	doc.Envelope = &record.Envelope{ID: "x", Origin: record.Retest, Outcome: record.Done, TookS: &took}
	r := ResultOf(doc)
	if !r.Retest || r.Cost != (Cost{33e6, 3500 * time.Millisecond}) || len(r.Directions) != 1 ||
		r.FarKernel != "Linux 6.1" {
		t.Fatalf("%+v", r)
	}
	if d := r.Directions[0]; d.Name != "up" || d.GoodputBps != bps || d.RTTMin != 20*time.Millisecond ||
		d.MTU != "1500 bytes" || d.Handshake != "no window scale, SACK, timestamps" {
		t.Errorf("%+v", d)
	}
	doc.Outcome = record.Interrupted
	if r := ResultOf(doc); r.Directions != nil || r.Cost.Bytes != 33e6 {
		t.Errorf("one that was cut short is a cost and no result: %+v", r)
	}
}

func TestMetrics(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 2))
	p, m := &Detector{}, NewMetrics()
	at := time.Unix(1_800_000_000, 0)
	for range 13 {
		r := usual(rng, at)
		p.Add(r)
		m.Add(Visit{Peer: "a\n\"b", At: at, Result: &r, Path: p})
		at = at.Add(time.Hour)
	}
	m.Add(Visit{Peer: "a\n\"b", At: at, Skip: QuietHours, Path: p})
	m.Add(Visit{Peer: "a\n\"b", At: at, Retest: true, Path: p,
		Events: []record.RecheckEvent{{Event: Rise, Metric: Goodput}}})
	for _, open := range []bool{false, true} {
		var page bytes.Buffer
		must.Do(t, m.Write(&page, open, "v"))
		for _, want := range []string{
			`fullpipe_recheck_tests_total{peer="a\n\"b",origin="scheduled",outcome="done"} 13`,
			`outcome="quiet-hours"} 1`, `events_total{peer="a\n\"b",event="dip",metric="goodput"} 1`,
			`dip{peer="a\n\"b",direction="up"} 0`, `usual_bps{peer="a\n\"b",direction="down"} `, `rtt_min_seconds{`,
			`newest_test_timestamp_seconds{peer="a\n\"b"} 1.8000432e+09`} {
			if !strings.Contains(page.String(), want) {
				t.Errorf("no %s in\n%s", want, page.String())
			}
		}
		if strings.HasSuffix(page.String(), "# EOF\n") != open {
			t.Error("the page's end")
		}
	}
}
