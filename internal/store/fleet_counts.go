package store

import (
	"context"
	"database/sql"
	"math"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/fleet/mesh"
)

// Counts are the figures of a run's directions as its two agents count them. One is invalid if its agent has not
// reported it. Up is the direction in which the near agent sends.
type Counts struct {
	NearUp, NearDown       sql.NullInt64   // payload in bytes, by the near agent's document
	FarUp, FarDown         sql.NullInt64   // by the far agent
	NearUpBps, NearDownBps sql.NullFloat64 // goodput, by the document
	FarUpNs, FarDownNs     sql.NullInt64   // time from the first to the last byte, by the far agent
}

// FarCount is a direction as the far agent counts it.
type FarCount struct {
	Bytes int64         // negative: not counted
	Span  time.Duration // from the first to the last byte; 0: not known
}

// Why a result is one agent's word.
const (
	OneEnd       = "one-end"       // the far agent has not reported its count
	CountsDiffer = "counts-differ" // by more than the counts of two ends differ at the end of a transfer
	TimesDiffer  = "times-differ"  // the goodput is not the far agent's bytes in its time
	TooShort     = "too-short"     // the two ends' times of so short a transfer cannot be compared
)

// The two ends' counts may differ by a share and by the payload in flight, their times by a share. Times of shorter
// or smaller directions are no proof, but may not differ by more than maxTimeOff besides.
const (
	maxCountsOff   = 0.05
	maxCountsBytes = 256 << 10
	maxTimesOff    = 0.1
	maxTimeOff     = 100 * time.Millisecond
	minSpan        = time.Second
	minSpanBytes   = 1e6
)

// direction has the figures of one direction.
type direction struct {
	near, far sql.NullInt64
	bps       sql.NullFloat64
	span      sql.NullInt64
}

func (c *Counts) up() direction { return direction{c.NearUp, c.FarUp, c.NearUpBps, c.FarUpNs} }
func (c *Counts) down() direction {
	return direction{c.NearDown, c.FarDown, c.NearDownBps, c.FarDownNs}
}

// unconfirmed compares the figures of two ends. It returns "" if they agree, or if the near agent counted nothing.
func (d direction) unconfirmed() string {
	switch off := max(d.near.Int64-d.far.Int64, d.far.Int64-d.near.Int64); {
	case !d.near.Valid:
		return ""
	case !d.far.Valid:
		return OneEnd
	case off > maxCountsBytes && float64(off) > maxCountsOff*float64(max(d.near.Int64, d.far.Int64)):
		return CountsDiffer
	case !d.bps.Valid: // stored by an older hub, or without a goodput
		return ""
	case !d.span.Valid:
		return OneEnd
	}
	return d.compareTimes()
}

// compareTimes compares the document's goodput with the far agent's bytes and time.
func (d direction) compareTimes() string {
	span := time.Duration(d.span.Int64)
	bits := 8 * float64(d.far.Int64)
	claimed := time.Duration(math.MaxInt64)
	if s := bits / d.bps.Float64; d.bps.Float64 > 0 && s < claimed.Seconds() {
		claimed = time.Duration(s * float64(time.Second))
	}
	off := max(span-claimed, claimed-span)
	tolerance := time.Duration(maxTimesOff * float64(max(span, min(claimed, 2*span))))
	long := span >= minSpan && d.far.Int64 >= minSpanBytes
	switch {
	case !long && d.bps.Float64 == 0: // all bytes in one read
		return TooShort
	case long && off > tolerance, off > tolerance+maxTimeOff:
		return TimesDiffer
	case !long:
		return TooShort
	}
	return ""
}

// severity orders the reasons of a run's two directions.
var severity = map[string]int{"": 0, TooShort: 1, OneEnd: 2, TimesDiffer: 3, CountsDiffer: 4}

// Doubtful reports whether grids and lists mark a result that is one agent's word for a reason.
// Healthy fast networks would have marks everywhere for transfers that are too short to compare
// times: the run's page and JSON have those.
func Doubtful(why string) bool { return severity[why] > severity[TooShort] }

// Unconfirmed returns why the result of a done job is one agent's word: OneEnd, CountsDiffer, TimesDiffer, TooShort, or
// "" if it is not. Of two directions it is the more severe reason.
func (j Job) Unconfirmed() string {
	if j.State != mesh.Done {
		return ""
	}
	up := j.up().unconfirmed()
	down := j.down().unconfirmed()
	if severity[up] >= severity[down] {
		return up
	}
	return down
}

// Contradicted reports whether the far agent's figures contradict the result of a done job.
func (j Job) Contradicted() bool {
	why := j.Unconfirmed()
	return why == CountsDiffer || why == TimesDiffer
}

// AddServed stores the far agent's counts of a run; a negative one was not counted. The counts of a run that another
// agent serves, or that it has reported before, change nothing. They share a commit with results.
func (f *Fleet) AddServed(ctx context.Context, agent, run string, up, down FarCount) error {
	count := func(n int64) sql.NullInt64 { return sql.NullInt64{Int64: n, Valid: n >= 0} }
	span := func(c FarCount) sql.NullInt64 { return sql.NullInt64{Int64: int64(c.Span), Valid: c.Span > 0} }
	return f.together(ctx, func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, "UPDATE job SET far_up = $1, far_down = $2, far_up_ns = $5, far_down_ns = $6 "+
			"WHERE id = $3 AND far_up IS NULL AND far_down IS NULL AND near <> '' AND near <> $4 AND (a = $4 OR b = $4)",
			count(up.Bytes), count(down.Bytes), run, agent, span(up), span(down))
		return err
	})
}
