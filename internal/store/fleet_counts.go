package store

import (
	"context"
	"database/sql"

	"github.com/fullpipe-net/fullpipe/internal/fleet/mesh"
)

// Counts are the payload of a run in bytes, as both of its agents count it. A count is invalid if its agent has not
// reported it.
type Counts struct {
	NearUp, NearDown sql.NullInt64 // by the near agent's document; up is what it sends
	FarUp, FarDown   sql.NullInt64 // by the far agent
}

// Why a result is one agent's word.
const (
	OneEnd       = "one-end"       // the far agent has not reported its count
	CountsDiffer = "counts-differ" // by more than the counts of two ends differ at the end of a transfer
)

// The two ends' counts may differ by a share and by the payload in flight.
const (
	maxCountsOff   = 0.05
	maxCountsBytes = 256 << 10
)

// unconfirmed compares two counts of a direction. It returns "" if they agree, or if the near agent counted nothing.
func unconfirmed(near, far sql.NullInt64) string {
	switch off := max(near.Int64-far.Int64, far.Int64-near.Int64); {
	case !near.Valid:
		return ""
	case !far.Valid:
		return OneEnd
	case off > maxCountsBytes && float64(off) > maxCountsOff*float64(max(near.Int64, far.Int64)):
		return CountsDiffer
	}
	return ""
}

// Unconfirmed returns why the result of a done job is one agent's word: OneEnd, CountsDiffer, or "" if it is not.
func (j Job) Unconfirmed() string {
	if j.State != mesh.Done {
		return ""
	}
	up := unconfirmed(j.NearUp, j.FarUp)
	down := unconfirmed(j.NearDown, j.FarDown)
	if up == CountsDiffer || down == "" {
		return up
	}
	return down
}

// AddServed stores the far agent's counts of a run; a negative one was not counted. The counts of a run that another
// agent serves, or that it has reported before, change nothing. They share a commit with results.
func (f *Fleet) AddServed(ctx context.Context, agent, run string, up, down int64) error {
	count := func(n int64) sql.NullInt64 { return sql.NullInt64{Int64: n, Valid: n >= 0} }
	return f.together(ctx, func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, "UPDATE job SET far_up = $1, far_down = $2 WHERE id = $3 AND far_up IS NULL AND "+
			"far_down IS NULL AND near <> '' AND near <> $4 AND (a = $4 OR b = $4)", count(up), count(down), run, agent)
		return err
	})
}
