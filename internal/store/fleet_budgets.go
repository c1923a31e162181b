package store

import (
	"context"
	"database/sql"
	"time"
)

// Charge is what an ended run took of its hosts' and links' budgets.
type Charge struct {
	A, B  string // agents
	At    time.Time
	Bytes int64
}

// Charges returns the charges of the runs that have ended and were granted since a time, the oldest first.
func (f *Fleet) Charges(ctx context.Context, since, until time.Time) (charges []Charge, err error) {
	err = f.query(ctx, func(rows *sql.Rows) error {
		var c Charge
		var at int64
		err := rows.Scan(&c.A, &c.B, &at, &c.Bytes)
		c.At = moment(at)
		charges = append(charges, c)
		return err
	}, "SELECT a, b, granted_ns, charged FROM job WHERE due_ns >= $1 AND granted_ns >= $2 AND granted_ns < $3 "+
		"AND charged > 0 AND state NOT IN ('due', 'granted') ORDER BY granted_ns",
		since.Add(-maxWait).UnixNano(), since.UnixNano(), until.UnixNano())
	return charges, err
}

// Spent returns the bytes that runs which were granted since a time have taken of each agent's budget, by its ID.
func (f *Fleet) Spent(ctx context.Context, since time.Time) (map[string]int64, error) {
	spent := map[string]int64{}
	const from = ", charged FROM job WHERE due_ns >= $1 AND granted_ns >= $2 AND charged > 0"
	err := f.query(ctx, func(rows *sql.Rows) error {
		var agent string
		var bytes int64
		err := rows.Scan(&agent, &bytes)
		spent[agent] = bytes
		return err
	}, "SELECT agent, CAST(sum(charged) AS BIGINT) FROM (SELECT a AS agent"+from+" UNION ALL SELECT b AS agent"+from+
		") AS r GROUP BY agent", since.Add(-maxWait).UnixNano(), since.UnixNano())
	return spent, err
}

// maxWait is a time that no run waits for its grant, so that the index of due times serves.
const maxWait = 100 * 24 * time.Hour
