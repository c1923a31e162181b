package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/search"
)

// Series summarizes a path.
type Series struct {
	Path, Far, Label string
	Runs             int
	Newest           time.Time
}

// Paths returns the paths that have runs, the most recently measured first. It returns at most limit paths after
// the first offset.
func (s *Store) Paths(ctx context.Context, offset, limit int) (all []Series, err error) {
	rows, err := s.db.QueryContext(ctx, `SELECT p.key, p.far, p.label, n.runs, n.newest FROM
		(SELECT path, count(*) AS runs, max(started_ns) AS newest FROM run GROUP BY path) n
		JOIN path p ON p.key = n.path ORDER BY n.newest DESC, p.key LIMIT $1 OFFSET $2`, limit, offset)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var one Series
		var newest int64
		if err := rows.Scan(&one.Path, &one.Far, &one.Label, &one.Runs, &newest); err != nil {
			return nil, err
		}
		one.Newest = time.Unix(0, newest).UTC()
		all = append(all, one)
	}
	return all, rows.Err()
}

// Page selects runs of a path.
type Page struct {
	Since, Before time.Time // zero: no limit
	Limit         int       // newest runs to return; 0 is all
}

// Of returns the runs of the path with this key, oldest first, without labels other than the accepted one. It reads
// only the rows that it returns.
func (s *Store) Of(ctx context.Context, key string, p Page) (runs []Run, err error) {
	since := int64(0)
	before := int64(1<<63 - 1)
	if !p.Since.IsZero() {
		since = p.Since.UnixNano()
	}
	if !p.Before.IsZero() {
		before = p.Before.UnixNano()
	}
	rows, err := s.db.QueryContext(ctx, `SELECT r.id, p.far, p.label, r.kind, r.started_ns, r.origin, r.outcome,
		d.direction, d.goodput_bps, d.rtt_min_s, d.limiter, d.retransmitted_ratio,
		d.verdict, d.strength, d.requests_per_s, d.p50_s, d.p99_s, d.lost_at,
		(SELECT value FROM label WHERE run = r.id AND name = $5) FROM
		(SELECT id, path, kind, started_ns, origin, outcome FROM run
			WHERE path = $1 AND started_ns >= $2 AND started_ns < $3 ORDER BY started_ns DESC, id DESC LIMIT $4) r
		JOIN path p ON p.key = r.path LEFT JOIN direction d ON d.run = r.id
		ORDER BY r.started_ns, r.id, d.direction DESC`, key, since, before, p.Limit, record.AcceptedLabel)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		one := Run{HistoryRun: record.HistoryRun{PathKey: key, Directions: []record.Figure{}}}
		var started int64
		var f record.Figure
		var direction, limiter, verdict, strength, places, accepted sql.NullString
		if err := rows.Scan(&one.ID, &one.Far, &one.PathLabel, &one.Kind, &started, &one.Origin, &one.Outcome,
			&direction, &f.GoodputBps, &f.RTTMinS, &limiter, &f.RetransmittedRatio, &verdict, &strength,
			&f.RequestsPerS, &f.P50S, &f.P99S, &places, &accepted); err != nil {
			return nil, err
		}
		if accepted.Valid {
			one.Labels = map[string]string{record.AcceptedLabel: accepted.String}
		}
		if n := len(runs); n == 0 || runs[n-1].ID != one.ID {
			one.StartedAt = time.Unix(0, started).UTC()
			runs = append(runs, one)
		}
		if direction.Valid {
			dropImpossible(&f)
			f.Direction = direction.String
			f.Limiter = limiter.String
			f.Verdict = search.Verdict(verdict.String)
			f.Strength = search.Strength(strength.String)
			f.LostAt = listOf(places.String)
			last := &runs[len(runs)-1]
			last.Directions = append(last.Directions, f)
		}
	}
	return runs, rows.Err()
}

// Path returns one path by its key.
func (s *Store) Path(ctx context.Context, key string) (Series, error) {
	one := Series{Path: key}
	var newest sql.NullInt64
	err := s.db.QueryRowContext(ctx, `SELECT p.far, p.label, (SELECT count(*) FROM run r WHERE r.path = p.key),
		(SELECT max(started_ns) FROM run r WHERE r.path = p.key) FROM path p WHERE p.key = $1`, key).
		Scan(&one.Far, &one.Label, &one.Runs, &newest)
	if errors.Is(err, sql.ErrNoRows) {
		return one, ErrNotFound
	}
	one.Newest = time.Unix(0, newest.Int64).UTC()
	return one, err
}

// Labels returns the current labels of a run, which may differ from its document's. id must be complete.
func (s *Store) Labels(ctx context.Context, id string) (map[string]string, error) {
	rows, err := s.db.QueryContext(ctx, "SELECT name, value FROM label WHERE run = $1", id)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var labels map[string]string
	for rows.Next() {
		var name, value string
		if err := rows.Scan(&name, &value); err != nil {
			return nil, err
		}
		if labels == nil {
			labels = map[string]string{}
		}
		labels[name] = value
	}
	return labels, rows.Err()
}

// Document returns a record with its samples and its current labels.
func (s *Store) Document(ctx context.Context, id string) (record.Document, error) {
	text, samples, err := s.Get(ctx, id)
	if err != nil {
		return nil, err
	}
	doc, err := record.Decode(text, samples)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", id, err)
	}
	if e := doc.Head().Envelope; e != nil {
		e.Labels, err = s.Labels(ctx, e.ID)
	}
	return doc, err
}

// dropImpossible removes figures that no document can contain: anyone with write access to a shared history can
// write rows.
func dropImpossible(f *record.Figure) {
	f.GoodputBps = known(f.GoodputBps)
	f.RTTMinS = known(f.RTTMinS)
	f.RetransmittedRatio = known(f.RetransmittedRatio)
	f.RequestsPerS = known(f.RequestsPerS)
	f.P50S = known(f.P50S)
	f.P99S = known(f.P99S)
}

// known returns a figure, or nil when it is not a valid one.
func known(v *float64) *float64 {
	if v == nil || !(*v >= 0 && *v <= math.MaxFloat64) {
		return nil
	}
	return v
}
