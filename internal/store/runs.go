package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/record"
)

// Run is a stored record as lists show it.
type Run struct {
	record.HistoryRun
	PathLabel string
}

// Filter selects runs.
type Filter struct {
	Path  string // key, label or far end's name; "" is all
	Since time.Time
	Limit int // newest runs to return; 0 is all
	// MeasuredHere excludes imported results, results of other hosts and clients' results.
	MeasuredHere bool
}

// List returns runs, newest first.
func (s *Store) List(ctx context.Context, f Filter) (runs []Run, err error) {
	limit := int64(math.MaxInt64)
	if f.Limit > 0 {
		limit = int64(f.Limit)
	}
	since := int64(0)
	if !f.Since.IsZero() {
		since = f.Since.UnixNano()
	}
	sealed := ""
	if f.MeasuredHere {
		sealed = "AND r.seal <> '' "
	}
	rows, err := s.db.QueryContext(ctx, `SELECT r.id, r.path, p.far, p.label, r.kind, r.started_ns, r.origin, r.outcome,
		r.seal FROM run r JOIN path p ON p.key = r.path`+ofPathSince+sealed+`ORDER BY r.started_ns DESC, r.id DESC
		LIMIT $3`,
		f.Path, since, limit)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	sealer := newSealer(s.dir, false)
	for rows.Next() {
		r := Run{HistoryRun: record.HistoryRun{Directions: []record.Figure{}}}
		var started int64
		var seal string
		if err := rows.Scan(&r.ID, &r.PathKey, &r.Far, &r.PathLabel, &r.Kind, &started, &r.Origin, &r.Outcome,
			&seal); err != nil {
			return nil, err
		}
		if f.MeasuredHere && !sealer.verify(seal, r.ID, r.PathKey) {
			continue
		}
		r.StartedAt = time.Unix(0, started).UTC()
		runs = append(runs, r)
	}
	if err := errors.Join(rows.Err(), rows.Close()); err != nil || len(runs) == 0 {
		return nil, err
	}
	return runs, s.complete(ctx, f.Path, runs)
}

// ofPathSince selects the runs of a path, $1, since a time, $2.
const ofPathSince = ` WHERE ($1 = '' OR p.key = $1 OR p.label = $1 OR p.far = $1) AND r.started_ns >= $2 `

// complete adds directions and labels to a path's runs. It uses two queries for all runs, because the server may be
// far away.
func (s *Store) complete(ctx context.Context, path string, runs []Run) error {
	byID := make(map[string]*Run, len(runs))
	for i := range runs {
		byID[runs[i].ID] = &runs[i]
	}
	oldest := runs[len(runs)-1].StartedAt.UnixNano()
	rows, err := s.db.QueryContext(ctx, `SELECT d.run, d.direction, d.goodput_bps, d.rtt_min_s, d.limiter,
		d.retransmitted_ratio, d.verdict, d.strength, d.requests_per_s, d.p50_s, d.p99_s, d.lost_at FROM direction d
		JOIN run r ON r.id = d.run JOIN path p ON p.key = r.path`+ofPathSince+`ORDER BY d.direction DESC`, path, oldest)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var id, places string
		var f record.Figure
		if err := rows.Scan(&id, &f.Direction, &f.GoodputBps, &f.RTTMinS, &f.Limiter,
			&f.RetransmittedRatio, &f.Verdict, &f.Strength, &f.RequestsPerS, &f.P50S, &f.P99S,
			&places); err != nil {
			return err
		}
		f.LostAt = listOf(places)
		dropImpossible(&f)
		if r := byID[id]; r != nil {
			r.Directions = append(r.Directions, f)
		}
	}
	if err := errors.Join(rows.Err(), rows.Close()); err != nil {
		return err
	}
	labels, err := s.db.QueryContext(ctx, `SELECT l.run, l.name, l.value FROM label l JOIN run r ON r.id = l.run
		JOIN path p ON p.key = r.path`+ofPathSince, path, oldest)
	if err != nil {
		return err
	}
	defer labels.Close()
	for labels.Next() {
		var id, name, value string
		if err := labels.Scan(&id, &name, &value); err != nil {
			return err
		}
		r := byID[id]
		if r == nil {
			continue
		}
		if r.Labels == nil {
			r.Labels = map[string]string{}
		}
		r.Labels[name] = value
	}
	return labels.Err()
}

// Get returns a record and its samples, which may be nil. id may be a unique part of an id; "last" is the newest
// run.
func (s *Store) Get(ctx context.Context, id string) (doc, samples []byte, err error) {
	full, err := s.find(ctx, id)
	if err != nil {
		return nil, nil, err
	}
	var packed, packedSamples []byte
	err = s.db.QueryRowContext(ctx, "SELECT r.doc, s.data FROM run r LEFT JOIN samples s ON s.run = r.id "+
		"WHERE r.id = $1", full).Scan(&packed, &packedSamples)
	if err != nil {
		return nil, nil, err
	}
	doc, err = unpack(packed)
	if err != nil || len(packedSamples) == 0 {
		return doc, nil, err
	}
	samples, err = unpack(packedSamples)
	return doc, samples, err
}

// find completes an id. UUIDv7s of the same time share a prefix, so a suffix works too.
func (s *Store) find(ctx context.Context, id string) (string, error) {
	query := "SELECT id FROM run WHERE substr(id, 1, length($1)) = $1 OR " +
		"substr(id, length(id) - length($1) + 1) = $1 LIMIT 2"
	args := []any{strings.ToLower(id)}
	if record.IsID(args[0].(string)) {
		query = "SELECT id FROM run WHERE id = $1"
	}
	if id == "last" {
		query = "SELECT id FROM run ORDER BY started_ns DESC, id DESC LIMIT 1"
		args = nil
	}
	rows, err := s.db.QueryContext(ctx, query, args...)
	if err != nil {
		return "", err
	}
	defer rows.Close()
	var found []string
	for rows.Next() {
		var one string
		if err := rows.Scan(&one); err != nil {
			return "", err
		}
		found = append(found, one)
	}
	switch {
	case rows.Err() != nil:
		return "", rows.Err()
	case len(found) == 0 || len(id) < 4:
		return "", fmt.Errorf("%s: %w", id, ErrNotFound)
	case len(found) > 1:
		return "", fmt.Errorf("%s: more than one run's id begins or ends with it", id)
	}
	return found[0], nil
}

// Forget removes a run.
func (s *Store) Forget(ctx context.Context, id string) (err error) {
	defer s.explain(&err)
	full, err := s.find(ctx, id)
	if err != nil {
		return err
	}
	_, err = s.db.ExecContext(ctx, "DELETE FROM run WHERE id = $1", full)
	return err
}

// Label sets a label of a run. An empty value removes it and returns ErrNoLabel when there is none.
func (s *Store) Label(ctx context.Context, id, name, value string) (err error) {
	defer s.explain(&err)
	full, err := s.find(ctx, id)
	if err != nil {
		return err
	}
	if value == "" {
		var was string
		err = s.db.QueryRowContext(ctx, "DELETE FROM label WHERE run = $1 AND name = $2 RETURNING value", full,
			name).Scan(&was)
		if errors.Is(err, sql.ErrNoRows) {
			err = fmt.Errorf("%w: %q", ErrNoLabel, name)
		}
		return err
	}
	_, err = s.db.ExecContext(ctx, "INSERT INTO label(run, name, value) VALUES($1,$2,$3) ON CONFLICT(run, name) DO "+
		"UPDATE SET value = excluded.value", full, plain(name), plain(value))
	return err
}

// Accept labels the newest run of a path, which is given as Filter.Path: its limiter and its rate are as they should
// be. It returns the run.
func (s *Store) Accept(ctx context.Context, path, by string) (Run, error) {
	runs, err := s.List(ctx, Filter{Path: path, Limit: 1})
	if err == nil && (len(runs) == 0 || path == "") {
		err = fmt.Errorf("%s: %w", path, ErrNotFound)
	}
	if err != nil {
		return Run{}, err
	}
	runs[0].Labels = map[string]string{record.AcceptedLabel: by}
	return runs[0], s.Label(ctx, runs[0].ID, record.AcceptedLabel, by)
}

// Labelled returns when the newest run with a label of this name began, by the path's key.
func (s *Store) Labelled(ctx context.Context, name string) (newest map[string]time.Time, err error) {
	defer s.explain(&err)
	rows, err := s.db.QueryContext(ctx, `SELECT r.path, MAX(r.started_ns) FROM label l JOIN run r ON r.id = l.run
		WHERE l.name = $1 GROUP BY r.path`, name)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	newest = map[string]time.Time{}
	for rows.Next() {
		var path string
		var started int64
		if err := rows.Scan(&path, &started); err != nil {
			return nil, err
		}
		newest[path] = time.Unix(0, started)
	}
	return newest, rows.Err()
}

// Past returns the figures of one direction of a path before a time, oldest first. It excludes failed runs and
// retests: retests of a suspected change are biased.
func (s *Store) Past(ctx context.Context, path, direction string, from, until time.Time) (all []record.Figure,
	err error) {
	rows, err := s.db.QueryContext(ctx, `SELECT d.direction, d.goodput_bps, d.rtt_min_s, d.limiter
		FROM run r JOIN direction d ON d.run = r.id
		WHERE r.path = $1 AND d.direction = $2 AND r.started_ns >= $3 AND r.started_ns < $4
		AND r.outcome = $5 AND r.origin <> $6 AND d.goodput_bps IS NOT NULL ORDER BY r.started_ns, r.id`,
		path, direction, from.UnixNano(), until.UnixNano(), string(record.Done), string(record.Retest))
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var f record.Figure
		if err := rows.Scan(&f.Direction, &f.GoodputBps, &f.RTTMinS, &f.Limiter); err != nil {
			return nil, err
		}
		if dropImpossible(&f); f.GoodputBps != nil {
			all = append(all, f)
		}
	}
	return all, rows.Err()
}
