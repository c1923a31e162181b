package report

import (
	"slices"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/advice"
	"github.com/fullpipe-net/fullpipe/internal/flow"
	"github.com/fullpipe-net/fullpipe/internal/model"
	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/record/guard"
	"github.com/fullpipe-net/fullpipe/internal/render/text"
	"github.com/fullpipe-net/fullpipe/internal/rfc6349"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// RFC6349 describes a test and its requirements.
func RFC6349(h record.Header, peer, reference string, cfg rfc6349.Config, r *rfc6349.Result) *record.RFC6349 {
	doc := &record.RFC6349{Header: h, Peer: peer, Reference: reference,
		EndedAt: h.StartedAt.Add(r.Elapsed).Round(time.Millisecond), Near: Host(r.Near), Far: Host(r.Far),
		Interrupted: r.Interrupted, Path: r.Path, Directions: slices.Clone(r.Directions),
		RunS: r.RunTime.Seconds(), ElapsedS: r.Elapsed.Seconds(), BytesSent: r.Bytes,
		Warnings: text.RFC6349Warnings(r.Warnings)}
	if len(cfg.Frames.Sizes) > 0 {
		doc.FrameSearch = &record.RFC6349FrameSearch{TrialS: r.TrialTime.Seconds(), LossRatio: cfg.Frames.Loss}
	}
	if len(cfg.Committed) > 0 {
		c := &record.CommittedRates{OverheadBytes: cfg.Overhead, ToleranceRatio: cfg.Tolerance}
		if v, ok := cfg.Committed[transfer.Up]; ok {
			c.UpBps = &v
		}
		if v, ok := cfg.Committed[transfer.Down]; ok {
			c.DownBps = &v
		}
		doc.Committed = c
	}
	for i := range doc.Directions {
		completeRFC6349(doc, r, &doc.Directions[i])
	}
	doc.Verdict = rfc6349.Conclude(doc.Directions)
	doc.Formulas = text.RFC6349Formulas(doc)
	text.FillRFC6349(doc)
	return doc
}

// completeRFC6349 adds the values to a direction that follow from its tests.
func completeRFC6349(doc *record.RFC6349, r *rfc6349.Result, d *record.RFC6349Direction) {
	d.RTT = doc.Path.RTT
	draw(d)
	for i := range d.Tests {
		if d.Tests[i].Runs == nil {
			d.Tests[i].Runs = []record.RFC6349Run{}
		}
	}
	if typical := oneConnection(d); typical != nil {
		p := &doc.Path
		facts := advice.Facts{GoodputBps: typical.GoodputBps, PathBps: d.MaxTCPBps, Bytes: typical.Bytes,
			DurationS: typical.Duration.Seconds(), RTTS: p.RTT.Seconds(), MSSBytes: p.MSS}
		ends := transfer.Result{Spec: transfer.Spec{Direction: d.Direction}, Near: r.Near, Far: r.Far}
		facts.Sender = systemOf(ends.Sender())
		facts.Receiver = systemOf(ends.Receiver())
		if p.MTU < p.FirstMTU {
			facts.PassingMTU = p.MTU
			facts.PassingMSS = p.MTU - p.Headers
			if p.Timestamps { // TCP_MAXSEG leaves out the option
				facts.PassingMSS += model.TimestampBytes
			}
		}
		d.Fix = text.FixSentences(advice.Fixes(typical.Verdict, facts))
	}
	guard.RFC6349(d)
}

// oneConnection returns the typical run of one connection: with automatic sizing, else with a
// sufficient window; nil if neither was measured.
func oneConnection(d *record.RFC6349Direction) *record.RFC6349Run {
	for _, kind := range []rfc6349.Kind{rfc6349.Automatic, rfc6349.Full} {
		if test := d.Find(kind); test != nil && test.Typical() != nil {
			return test.Typical()
		}
	}
	return nil
}

// draw adds the data of the curves: those of the typical run of one connection.
func draw(d *record.RFC6349Direction) {
	test := d.Find(rfc6349.Full)
	if test == nil || test.Typical() == nil {
		return
	}
	run := test.Typical()
	step := max(len(run.Intervals)/200, 1)
	for i := 0; i+step <= len(run.Intervals) && len(run.Intervals) >= 3; i += step {
		var bytes int64
		for _, one := range run.Intervals[i : i+step] {
			bytes += one.Bytes
		}
		from := run.Intervals[i].Start
		to := run.Intervals[i+step-1].End
		v := int64(Bps(bytes, to-from))
		d.Course = append(d.Course, flow.Point{At: int64(from), Value: v}, flow.Point{At: int64(to), Value: v})
	}
	d.RoundTrips = run.RoundTrips
}
