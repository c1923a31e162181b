package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/record"
)

// Keep limits what Trim leaves. Removed runs leave daily figures. Clients' results have their own limits: a quarter
// of Results and Bytes. An age limit applies only to a run with 10 newer ones.
type Keep struct {
	Samples time.Duration
	Runs    time.Duration
	Results int   // newest results that stay; 0 is all
	Bytes   int64 // used bytes of the file; the newest run always stays
}

// KeepByDefault contains the limits of an unattended history.
var KeepByDefault = Keep{Samples: 30 * 24 * time.Hour, Runs: 2 * 365 * 24 * time.Hour,
	Results: 1_000_000, Bytes: 512 << 20}

// ErrGone reports that a run is older than the oldest run that the history keeps.
var ErrGone = errors.New("older than the oldest run in this history")

// Trim removes samples and runs by age, then runs by number. If the file is still too large it removes clients'
// results, then the oldest samples, then the oldest runs.
func (s *Store) Trim(ctx context.Context, now time.Time, keep Keep) (err error) {
	defer s.explain(&err)
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if s.mayTrim != "" {
		var may bool
		if err := tx.QueryRowContext(ctx, s.mayTrim).Scan(&may); err != nil || !may {
			return err
		}
	}
	for _, of := range []class{owners, clients} {
		trusted, err := trustedNow(ctx, tx, of, now)
		if err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, "DELETE FROM samples WHERE run IN (SELECT id FROM run WHERE started_ns < $1"+
			string(of)+")", trusted.Add(-keep.Samples).UnixNano()); err != nil {
			return err
		}
		if of == clients {
			err = s.trimClients(ctx, tx, trusted, keep)
		} else {
			err = trimOwners(ctx, tx, trusted, keep)
		}
		if err != nil {
			return err
		}
	}
	for s.usedBytes != nil {
		used, err := s.usedBytes(ctx, tx)
		if err != nil {
			return err
		}
		if used <= keep.Bytes {
			break
		}
		more, err := s.shrinkClients(ctx, tx)
		if err == nil && !more {
			more, err = shrink(ctx, tx)
		}
		if err != nil {
			return err
		}
		if !more {
			break
		}
	}
	return tx.Commit()
}

// trimOwners replaces the owner's results by daily figures, by age and by number.
func trimOwners(ctx context.Context, tx *sql.Tx, now time.Time, keep Keep) error {
	if err := rollUp(ctx, tx, now.Add(-keep.Runs).UnixNano()); err != nil || keep.Results == 0 {
		return err
	}
	last, err := newest(ctx, tx, owners, math.MaxInt64, keep.Results)
	if err == nil && last >= 0 {
		err = rollUp(ctx, tx, last+1)
	}
	return err
}

// minNewerRuns is how many newer results a run needs before its age counts. A wrong clock, here or where a result
// was imported from, then deletes nothing.
const minNewerRuns = 10

// trustedNow returns the start time of the newest result that minNewerRuns results confirm, itself included.
func trustedNow(ctx context.Context, tx *sql.Tx, of class, now time.Time) (time.Time, error) {
	at, err := newest(ctx, tx, of, now.UnixNano(), minNewerRuns-1)
	return time.Unix(0, max(0, at)), err
}

// newest returns the start time of the newest run until a time after skipping some; -1 when there is none.
func newest(ctx context.Context, tx *sql.Tx, of class, until int64, skip int) (at int64, err error) {
	err = tx.QueryRowContext(ctx, "SELECT started_ns FROM run WHERE started_ns <= $1"+string(of)+
		" ORDER BY started_ns DESC LIMIT 1 OFFSET $2", until, skip).Scan(&at)
	if errors.Is(err, sql.ErrNoRows) {
		return -1, nil
	}
	return at, err
}

// shrink removes the oldest sixteenth of the owner's samples or, without samples, of the runs. The newest run
// always stays. No clients' results are left when it is called.
func shrink(ctx context.Context, tx *sql.Tx) (more bool, err error) {
	result, err := tx.ExecContext(ctx, `DELETE FROM samples WHERE run IN (SELECT r.id FROM run r JOIN samples s
		ON s.run = r.id WHERE r.id <> (SELECT id FROM run ORDER BY started_ns DESC, id DESC LIMIT 1)
		ORDER BY r.started_ns LIMIT (SELECT max(1, count(*) / 16) FROM samples))`)
	if err != nil {
		return false, err
	}
	if n, err := result.RowsAffected(); err != nil || n > 0 {
		return true, err
	}
	var until sql.NullInt64 // first run that stays
	err = tx.QueryRowContext(ctx, `SELECT started_ns FROM run ORDER BY started_ns
		LIMIT 1 OFFSET (SELECT max(1, count(*) / 16) FROM run)`).Scan(&until)
	if errors.Is(err, sql.ErrNoRows) { // at most one run
		return false, nil
	}
	if err != nil {
		return false, err
	}
	var before int
	if err := tx.QueryRowContext(ctx, "SELECT count(*) FROM run WHERE started_ns < $1", until.Int64).
		Scan(&before); err != nil || before == 0 {
		return false, err
	}
	return true, rollUp(ctx, tx, until.Int64)
}

// rollUp replaces the owner's runs before a time by daily figures.
func rollUp(ctx context.Context, tx *sql.Tx, before int64) error {
	var oldest sql.NullInt64
	if err := tx.QueryRowContext(ctx, "SELECT min(started_ns) FROM run WHERE client = ''").Scan(&oldest); err != nil ||
		!oldest.Valid || oldest.Int64 >= before {
		return err
	}
	// This comes first, so that a concurrent writer of a run waits and then gets ErrGone.
	if _, err := tx.ExecContext(ctx, "UPDATE gone SET before_ns = CASE WHEN before_ns > $1 THEN before_ns ELSE $1 END",
		before); err != nil {
		return err
	}
	days, err := liveDays(ctx, tx, owners, "", math.MinInt64, before)
	if err != nil {
		return err
	}
	for k, d := range days {
		if _, err := tx.ExecContext(ctx, `INSERT INTO day(path, direction, day, limiter, n, sum_log, least_bps, most_bps,
			rtt_min_s) VALUES($1,$2,$3,$4,$5,$6,$7,$8,$9) ON CONFLICT(path, direction, day, limiter) DO UPDATE SET
			n = day.n + excluded.n, sum_log = day.sum_log + excluded.sum_log,
			least_bps = CASE WHEN excluded.least_bps < day.least_bps THEN excluded.least_bps ELSE day.least_bps END,
			most_bps = CASE WHEN excluded.most_bps > day.most_bps THEN excluded.most_bps ELSE day.most_bps END,
			rtt_min_s = CASE WHEN day.rtt_min_s IS NULL OR excluded.rtt_min_s < day.rtt_min_s THEN excluded.rtt_min_s
			ELSE day.rtt_min_s END`,
			k.path, k.direction, k.day, k.limiter, d.n, d.sumLog, d.minBps, d.maxBps, d.rttMin); err != nil {
			return fmt.Errorf("figures of a day: %w", err)
		}
	}
	_, err = tx.ExecContext(ctx, "DELETE FROM run WHERE client = '' AND started_ns < $1", before)
	return err
}

// dayKey and daySum are a row of the daily figures.
type dayKey struct {
	path, direction, limiter string
	day                      int64
}

type daySum struct {
	n              int
	sumLog         float64
	minBps, maxBps float64
	rttMin         *float64
}

func (d *daySum) add(o daySum) {
	if d.n == 0 {
		*d = o
		return
	}
	d.n = d.n + o.n
	d.sumLog = d.sumLog + o.sumLog
	d.minBps = min(d.minBps, o.minBps)
	d.maxBps = max(d.maxBps, o.maxBps)
	if o.rttMin != nil && (d.rttMin == nil || *o.rttMin < *d.rttMin) {
		d.rttMin = o.rttMin
	}
}

// possible reports whether the figures of a day are consistent: anyone with write access to a shared history can
// write rows.
func (d *daySum) possible() bool {
	const rounding = 1e-6
	d.rttMin = known(d.rttMin)
	mean := d.sumLog / float64(d.n)
	return d.n > 0 && d.n < 1e9 && d.minBps > 0 && d.maxBps <= math.MaxFloat64 && mean >= math.Log(d.minBps)-rounding &&
		mean <= math.Log(d.maxBps)+rounding
}

const nsOfDay = int64(24 * time.Hour)

// querier is a database or a transaction.
type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// liveDays computes the daily figures of a class's stored runs, of those that Past returns.
func liveDays(ctx context.Context, db querier, of class, path string, from, before int64) (map[dayKey]daySum, error) {
	rows, err := db.QueryContext(ctx, `SELECT r.path, d.direction, d.limiter, r.started_ns, d.goodput_bps, d.rtt_min_s
		FROM run r JOIN direction d ON d.run = r.id JOIN path p ON p.key = r.path
		WHERE ($1 = '' OR p.key = $1 OR p.label = $1 OR p.far = $1) AND r.started_ns >= $2 AND r.started_ns < $3
		AND r.outcome = $4 AND r.origin <> $5 AND d.goodput_bps > 0`+string(of),
		path, from, before, string(record.Done), string(record.Retest))
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	days := map[dayKey]daySum{}
	for rows.Next() {
		var k dayKey
		var started int64
		var bps float64
		one := daySum{n: 1}
		if err := rows.Scan(&k.path, &k.direction, &k.limiter, &started, &bps, &one.rttMin); err != nil {
			return nil, err
		}
		if !(bps <= math.MaxFloat64) { // rejects NaN, too
			continue
		}
		one.rttMin = known(one.rttMin)
		k.day = started / nsOfDay
		one.sumLog = math.Log(bps)
		one.minBps = bps
		one.maxBps = bps
		sum := days[k]
		sum.add(one)
		days[k] = sum
	}
	return days, rows.Err()
}
