package store

import (
	"cmp"
	"context"
	"math"
	"slices"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/record"
)

// Days returns the daily figures of the filter's path, oldest first. Retests and failed runs do not count.
func (s *Store) Days(ctx context.Context, f Filter) ([]record.HistoryDay, error) {
	from := int64(math.MinInt64)
	if !f.Since.IsZero() {
		from = f.Since.UnixNano() / nsOfDay * nsOfDay
	}
	tx, err := s.db.BeginTx(ctx, s.oneState) // no roll-up happens between the two reads
	if err != nil {
		return nil, err
	}
	defer tx.Rollback()
	sums, err := liveDays(ctx, tx, all, f.Path, from, math.MaxInt64)
	if err != nil {
		return nil, err
	}
	rows, err := tx.QueryContext(ctx, `SELECT d.path, d.direction, d.limiter, d.day, d.n, d.sum_log, d.least_bps,
		d.most_bps, d.rtt_min_s FROM day d JOIN path p ON p.key = d.path
		WHERE ($1 = '' OR p.key = $1 OR p.label = $1 OR p.far = $1) AND d.day >= $2`, f.Path, from/nsOfDay)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var k dayKey
		var d daySum
		if err := rows.Scan(&k.path, &k.direction, &k.limiter, &k.day, &d.n, &d.sumLog, &d.minBps, &d.maxBps,
			&d.rttMin); err != nil {
			return nil, err
		}
		if !d.possible() {
			continue
		}
		sum := sums[k]
		sum.add(d)
		sums[k] = sum
	}
	if err := rows.Err(); err != nil {
		return nil, err
	}
	rows.Close()
	fars, err := farNames(ctx, tx)
	if err != nil {
		return nil, err
	}
	days := joinLimiters(sums, fars)
	if n := len(days) - f.Limit; f.Limit > 0 && n > 0 {
		days = days[n:]
	}
	return days, nil
}

func farNames(ctx context.Context, db querier) (map[string]string, error) {
	rows, err := db.QueryContext(ctx, "SELECT key, far FROM path")
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	fars := map[string]string{}
	for rows.Next() {
		var key, far string
		if err := rows.Scan(&key, &far); err != nil {
			return nil, err
		}
		fars[key] = far
	}
	return fars, rows.Err()
}

// joinLimiters merges the rows of each limiter into one day.
func joinLimiters(sums map[dayKey]daySum, fars map[string]string) []record.HistoryDay {
	whole := map[dayKey]daySum{}
	limiters := map[dayKey]map[string]int{}
	for k, d := range sums {
		name := k.limiter
		k.limiter = ""
		if limiters[k] == nil {
			limiters[k] = map[string]int{}
		}
		limiters[k][name] += d.n
		sum := whole[k]
		sum.add(d)
		whole[k] = sum
	}
	days := make([]record.HistoryDay, 0, len(whole))
	for k, d := range whole {
		days = append(days, record.HistoryDay{Day: time.Unix(0, k.day*nsOfDay).UTC().Format(time.DateOnly), PathKey: k.path,
			Far: fars[k.path], Direction: k.direction, Runs: d.n, MeanBps: math.Exp(d.sumLog / float64(d.n)),
			LeastBps: d.minBps, MostBps: d.maxBps, RTTMinS: d.rttMin, Limiters: limiters[k]})
	}
	slices.SortFunc(days, func(a, b record.HistoryDay) int {
		return cmp.Or(cmp.Compare(a.Day, b.Day), cmp.Compare(a.Far, b.Far), cmp.Compare(a.PathKey, b.PathKey),
			cmp.Compare(b.Direction, a.Direction))
	})
	return days
}
