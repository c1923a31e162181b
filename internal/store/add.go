package store

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"regexp"
	"strings"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/record"
)

// pathKey matches what record.SeriesID.Key makes.
var pathKey = regexp.MustCompile(`^[0-9a-v]{16}$`)

// entry is a decoded record with the values of its table row.
type entry struct {
	*record.Envelope
	doc     record.Document
	started time.Time
	sum     record.Summary
	client  string // client that the test was for, see record.Client; "" is the history's owner
}

// read decodes and validates a document.
func read(doc []byte) (*entry, error) {
	decoded, err := record.Decode(doc, nil)
	if err != nil {
		return nil, err
	}
	return validated(decoded)
}

// validated returns the entry of a document that may be stored.
func validated(decoded record.Document) (*entry, error) {
	e := &entry{Envelope: decoded.Head().Envelope, doc: decoded, started: decoded.Head().StartedAt,
		sum: record.Summarize(decoded)}
	e.client = record.Client(e.sum.Far)
	if e.Envelope == nil || e.ID == "" || e.PathKey == "" {
		return nil, errors.New("a document without id and path_key cannot be stored: it was not measured, or by an older " +
			"fullpipe")
	}
	if !record.IsID(e.ID) || !pathKey.MatchString(e.PathKey) {
		return nil, fmt.Errorf("id %.40q or path_key %.40q is not of the form that fullpipe makes", e.ID, e.PathKey)
	}
	if e.started.Before(time.Unix(0, 0)) || e.started.After(time.Unix(0, math.MaxInt64)) {
		return nil, fmt.Errorf("started_at is %s: out of range",
			e.started.Format(time.RFC3339))
	}
	for _, f := range e.sum.Figures {
		if f.GoodputBps != nil && *f.GoodputBps < 0 || f.RTTMinS != nil && *f.RTTMinS < 0 {
			return nil, fmt.Errorf("%s: negative goodput or round trip", f.Direction)
		}
	}
	return e, nil
}

// plain replaces NUL, which a PostgreSQL text cannot contain.
func plain[T ~string](text T) string { return strings.ReplaceAll(string(text), "\x00", "\ufffd") }

// Add stores an imported record and its samples unchanged. It ignores a record that is already stored, except a
// later state of a growing one (record.WatchKept). added reports whether the history changed.
func (s *Store) Add(ctx context.Context, doc, samples []byte) (added bool, err error) {
	e, err := read(doc)
	if err != nil {
		return false, err
	}
	return s.add(ctx, e, doc, samples, false)
}

// add stores a record. It seals a record of this host, or counts it against the client's quota.
func (s *Store) add(ctx context.Context, e *entry, doc, samples []byte, here bool) (added bool, err error) {
	defer s.explain(&err)
	seal := ""
	packed := pack(doc)
	packedSamples := []byte(nil)
	bytes := 0
	if len(samples) > 0 {
		packedSamples = pack(samples)
	}
	switch {
	case e.client != "":
		bytes = len(packed) + len(packedSamples)
	case here:
		seal = newSealer(s.dir, true).seal(e.ID, e.PathKey)
	}
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return false, err
	}
	defer tx.Rollback()
	if here && e.client != "" {
		if err := s.checkQuota(ctx, tx, e); err != nil {
			return false, err
		}
	}
	added, err = s.insert(ctx, tx, e, packed, packedSamples, bytes, seal)
	if err == nil && !added {
		added, err = s.grow(ctx, tx, e, doc, seal)
	}
	if err != nil || !added {
		return false, err
	}
	return true, tx.Commit()
}

// insert inserts a record and its figures, labels and samples. added is false where it is stored already.
func (s *Store) insert(ctx context.Context, tx *sql.Tx, e *entry, packed, packedSamples []byte, bytes int,
	seal string) (added bool, err error) {
	var gone int64
	if err := tx.QueryRowContext(ctx, "SELECT before_ns FROM gone"+s.untilCommit).Scan(&gone); err != nil {
		return false, err
	}
	if e.started.UnixNano() < gone {
		return false, ErrGone
	}
	if _, err := tx.ExecContext(ctx, "INSERT INTO path(key, far) VALUES($1, $2) ON CONFLICT DO NOTHING", e.PathKey,
		plain(e.sum.Far)); err != nil {
		return false, err
	}
	result, err := tx.ExecContext(ctx, "INSERT INTO run(id, path, kind, started_ns, origin, outcome, doc, client, bytes, "+
		"seal) VALUES($1,$2,$3,$4,$5,$6,$7,$8,$9,$10) ON CONFLICT DO NOTHING", e.ID, e.PathKey, plain(e.sum.Kind),
		e.started.UnixNano(), plain(e.Origin), plain(e.Outcome), packed, e.client, bytes, seal)
	if err != nil {
		return false, err
	}
	if n, err := result.RowsAffected(); err != nil || n == 0 {
		return false, err
	}
	if err := addFigures(ctx, tx, e); err != nil {
		return false, err
	}
	for name, value := range e.Labels {
		if _, err := tx.ExecContext(ctx, "INSERT INTO label(run, name, value) VALUES($1,$2,$3) ON CONFLICT DO NOTHING",
			e.ID, plain(name), plain(value)); err != nil {
			return false, err
		}
	}
	if packedSamples != nil {
		if _, err := tx.ExecContext(ctx, "INSERT INTO samples(run, data) VALUES($1,$2)", e.ID,
			packedSamples); err != nil {
			return false, err
		}
	}
	return true, nil
}

// checkQuota returns ErrClientQuota when the client's quota of the last 24 hours is used up.
func (s *Store) checkQuota(ctx context.Context, tx *sql.Tx, e *entry) error {
	var kept int
	err := tx.QueryRowContext(ctx, "SELECT count(*) FROM run WHERE client <> '' AND client = $1 AND started_ns > $2 "+
		"AND id <> $3", e.client, e.started.Add(-24*time.Hour).UnixNano(), e.ID).Scan(&kept)
	if err == nil && kept >= s.clientResultsADay() {
		err = ErrClientQuota
	}
	return err
}

func (s *Store) clientResultsADay() int { return cmp.Or(s.ClientResultsADay, DefaultClientResultsADay) }

func addFigures(ctx context.Context, tx *sql.Tx, e *entry) error {
	for _, f := range e.sum.Figures {
		if _, err := tx.ExecContext(ctx, "INSERT INTO direction(run, direction, goodput_bps, rtt_min_s, limiter, "+
			"retransmitted_ratio, verdict, strength, requests_per_s, p50_s, p99_s, lost_at) "+
			"VALUES($1,$2,$3,$4,$5,$6,$7,$8,$9,$10,$11,$12) ON CONFLICT DO NOTHING",
			e.ID, plain(f.Direction), f.GoodputBps, f.RTTMinS, plain(f.Limiter), f.RetransmittedRatio,
			plain(string(f.Verdict)), plain(string(f.Strength)), f.RequestsPerS, f.P50S, f.P99S,
			plain(strings.Join(f.LostAt, ","))); err != nil {
			return err
		}
	}
	return nil
}
