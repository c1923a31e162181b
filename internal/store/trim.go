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

// Keep says how much is kept, and until ten results are how much younger. What goes leaves
// its figures in Days. Clients' results count apart, with a quarter of Results and Bytes.
type Keep struct {
	Samples time.Duration
	Runs    time.Duration
	Results int   // the newest so many; 0 is all
	Bytes   int64 // of a file's used part; the newest run stays whatever it takes
}

// KeepByDefault bounds a history that nobody looks after.
var KeepByDefault = Keep{Samples: 30 * 24 * time.Hour, Runs: 2 * 365 * 24 * time.Hour,
	Results: 1_000_000, Bytes: 512 << 20}

// ErrGone says that a run is older than those of which only the days' figures are left.
var ErrGone = errors.New("older than what this history still keeps run by run")

// Trim lets go of what is kept no longer: samples and runs by their age, runs by their
// number, and where a file takes more than it may, clients' results, then the oldest samples, then the oldest runs.
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
		witnessed, err := witness(ctx, tx, of, now)
		if err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, "DELETE FROM samples WHERE run IN (SELECT id FROM run WHERE started_ns < $1"+
			string(of)+")", witnessed.Add(-keep.Samples).UnixNano()); err != nil {
			return err
		}
		if of == clients {
			err = s.trimClients(ctx, tx, witnessed, keep)
		} else {
			err = trimOwners(ctx, tx, witnessed, keep)
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

// trimOwners replaces the owner's results by their figures of each day, by age and by number.
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

// witnesses is how many results have to be so much younger before anything goes by its age:
// a clock that is wrong for a while, here or where a result was imported from, deletes
// nothing.
const witnesses = 10

// witness is when the last result of a class was measured that has so many witnesses, itself included.
func witness(ctx context.Context, tx *sql.Tx, of class, now time.Time) (time.Time, error) {
	at, err := newest(ctx, tx, of, now.UnixNano(), witnesses-1)
	return time.Unix(0, max(0, at)), err
}

// newest is when the newest run of a class but so many was measured, of those until a time; -1 where
// there is none.
func newest(ctx context.Context, tx *sql.Tx, of class, until int64, but int) (at int64, err error) {
	err = tx.QueryRowContext(ctx, "SELECT started_ns FROM run WHERE started_ns <= $1"+string(of)+
		" ORDER BY started_ns DESC LIMIT 1 OFFSET $2", until, but).Scan(&at)
	if errors.Is(err, sql.ErrNoRows) {
		return -1, nil
	}
	return at, err
}

// shrink takes away a sixteenth of the owner's samples, or of the runs where there are none, the
// oldest first; never the newest run. There are no clients' results any more.
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
	var until sql.NullInt64 // the first that stays
	err = tx.QueryRowContext(ctx, `SELECT started_ns FROM run ORDER BY started_ns
		LIMIT 1 OFFSET (SELECT max(1, count(*) / 16) FROM run)`).Scan(&until)
	if errors.Is(err, sql.ErrNoRows) { // one run, or none
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

// rollUp replaces the owner's runs of before a time by their figures of each day.
func rollUp(ctx context.Context, tx *sql.Tx, before int64) error {
	var oldest sql.NullInt64
	if err := tx.QueryRowContext(ctx, "SELECT min(started_ns) FROM run WHERE client = ''").Scan(&oldest); err != nil ||
		!oldest.Valid || oldest.Int64 >= before {
		return err
	}
	// First, so that whoever adds a run meanwhile waits, and then learns that it is too old.
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
			k.path, k.direction, k.day, k.limiter, d.n, d.sumLog, d.least, d.most, d.rttMin); err != nil {
			return fmt.Errorf("figures of a day: %w", err)
		}
	}
	_, err = tx.ExecContext(ctx, "DELETE FROM run WHERE client = '' AND started_ns < $1", before)
	return err
}

// dayKey and daySum are a row of what is left of a day.
type dayKey struct {
	path, direction, limiter string
	day                      int64
}

type daySum struct {
	n           int
	sumLog      float64
	least, most float64
	rttMin      *float64
}

func (d *daySum) add(o daySum) {
	if d.n == 0 {
		*d = o
		return
	}
	d.n = d.n + o.n
	d.sumLog = d.sumLog + o.sumLog
	d.least = min(d.least, o.least)
	d.most = max(d.most, o.most)
	if o.rttMin != nil && (d.rttMin == nil || *o.rttMin < *d.rttMin) {
		d.rttMin = o.rttMin
	}
}

// possible says whether a day of results can be so: whoever may write to a shared history writes its rows.
func (d *daySum) possible() bool {
	const rounding = 1e-6
	d.rttMin = known(d.rttMin)
	mean := d.sumLog / float64(d.n)
	return d.n > 0 && d.n < 1e9 && d.least > 0 && d.most <= math.MaxFloat64 && mean >= math.Log(d.least)-rounding &&
		mean <= math.Log(d.most)+rounding
}

const nsOfDay = int64(24 * time.Hour)

// querier is a database or a transaction of it.
type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// liveDays sums up the days of a class's runs that are kept, those of Past.
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
		if !(bps <= math.MaxFloat64) { // nor NaN
			continue
		}
		one.rttMin = known(one.rttMin)
		k.day = started / nsOfDay
		one.sumLog = math.Log(bps)
		one.least = bps
		one.most = bps
		sum := days[k]
		sum.add(one)
		days[k] = sum
	}
	return days, rows.Err()
}
