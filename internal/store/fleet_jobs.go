package store

import (
	"context"
	"database/sql"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/fleet/mesh"
	"github.com/fullpipe-net/fullpipe/internal/record"
)

// Job is a due run of a pair. Its ID is the ID of the run's document.
type Job struct {
	ID, Pair, Task string
	A, B           string // agents, A < B
	Near           string // the agent that tests, from its grant on
	Origin         record.Origin
	Due, Late      time.Time
	State          mesh.State
	Reason         mesh.Reason
	Detail         string // of the reason
	Epoch          int64
	Granted, Until time.Time // the grant
	Ended          time.Time
	Charged        int64 // bytes that it takes of its hosts' and links' budgets: reserved at its grant, then what it moved
	Counts
}

// Other returns the other agent of the job's pair.
func (j Job) Other(agent string) string {
	if agent == j.A {
		return j.B
	}
	return j.A
}

// PairState is what the schedule keeps of a pair.
type PairState struct {
	Next  time.Time // when its next run is due
	Near  string    // the agent that connected in the last run that worked, "" before
	Asked time.Time // when an incident last made it due
}

// PairStates returns the state of all pairs by key.
func (f *Fleet) PairStates(ctx context.Context) (map[string]PairState, error) {
	states := map[string]PairState{}
	err := f.query(ctx, func(rows *sql.Rows) error {
		var key string
		var next, asked int64
		var p PairState
		err := rows.Scan(&key, &next, &p.Near, &asked)
		p.Next = moment(next)
		p.Asked = moment(asked)
		states[key] = p
		return err
	}, "SELECT key, next_ns, near, asked_ns FROM pair")
	return states, err
}

// Due inserts the due jobs of pairs, and when their next ones are due, if this hub leads. A job that exists changes
// nothing.
func (f *Fleet) Due(ctx context.Context, lead Lead, jobs []Job, next map[string]time.Time) error {
	return f.change(ctx, func(tx *sql.Tx) error {
		var leads bool
		if err := tx.QueryRowContext(ctx, "SELECT "+f.leads(1, 2), lead.Epoch, lead.Holder).Scan(&leads); err != nil {
			return err
		}
		if !leads {
			return ErrNotLeading
		}
		err := eachRows(jobs, func(some []Job) error {
			var v values
			for _, j := range some {
				v.add(j.ID, j.Pair, j.Task, j.A, j.B, string(j.Origin), j.Due.UnixNano(), j.Late.UnixNano(), string(mesh.Due))
			}
			_, err := tx.ExecContext(ctx, "INSERT INTO job(id, pair, task, a, b, origin, due_ns, late_ns, state) VALUES "+
				v.text.String()+" ON CONFLICT DO NOTHING", v.args...)
			return err
		})
		if err != nil {
			return err
		}
		return eachRows(slices.Sorted(maps.Keys(next)), func(some []string) error {
			var v values
			for _, key := range some {
				v.add(key, next[key].UnixNano())
			}
			_, err := tx.ExecContext(ctx, "INSERT INTO pair(key, next_ns) VALUES "+v.text.String()+
				" ON CONFLICT(key) DO UPDATE SET next_ns = excluded.next_ns", v.args...)
			return err
		})
	})
}

// Request inserts a job that a user asks for. Any process may do so; the hub that leads starts it.
func (f *Fleet) Request(ctx context.Context, j Job) error {
	return f.exec(ctx, "INSERT INTO job(id, pair, task, a, b, origin, due_ns, late_ns, state) "+
		"VALUES($1,$2,$3,$4,$5,$6,$7,$8,$9)", j.ID, j.Pair, j.Task, j.A, j.B, string(j.Origin), j.Due.UnixNano(),
		j.Late.UnixNano(), string(mesh.Due))
}

// Grant is the order of a due job.
type Grant struct {
	ID    string
	Near  string // the agent that tests
	Lasts time.Duration
	Bytes int64 // reserved of the budgets of its hosts and links
}

// Grant orders due jobs, if this hub leads, and returns the IDs of those that it granted: not those that have ended or
// were granted before. Each statement checks the lead, so two hubs never grant one job.
func (f *Fleet) Grant(ctx context.Context, lead Lead, now time.Time, grants ...Grant) (granted map[string]bool,
	err error) {
	granted = map[string]bool{}
	if len(grants) == 0 {
		return granted, nil
	}
	err = f.change(ctx, func(tx *sql.Tx) error {
		return eachRows(grants, func(some []Grant) error {
			v := values{args: []any{string(mesh.Granted), lead.Epoch, now.UnixNano(), string(mesh.Due), lead.Holder},
				types: []string{"TEXT", "TEXT", "BIGINT", "BIGINT"}}
			for _, g := range some {
				v.add(g.ID, g.Near, now.Add(g.Lasts).UnixNano(), g.Bytes)
			}
			rows, err := tx.QueryContext(ctx, "UPDATE job SET state = $1, near = g.near, epoch = $2, granted_ns = $3, "+
				"until_ns = g.until_ns, charged = g.bytes FROM (SELECT column1 AS id, column2 AS near, column3 AS until_ns, "+
				"column4 AS bytes FROM (VALUES "+
				v.text.String()+") AS v) AS g WHERE job.id = g.id AND job.state = $4 AND "+f.leads(2, 5)+" RETURNING job.id",
				v.args...)
			if err != nil {
				return err
			}
			defer rows.Close()
			for rows.Next() {
				var id string
				if err := rows.Scan(&id); err != nil {
					return err
				}
				granted[id] = true
			}
			return rows.Err()
		})
	})
	if err != nil {
		return nil, err
	}
	return granted, nil
}

// SetNear changes the agent that tests in a granted job, when the first could not connect.
func (f *Fleet) SetNear(ctx context.Context, id, near string) error {
	return f.exec(ctx, "UPDATE job SET near = $1 WHERE id = $2 AND state = $3", near, id, string(mesh.Granted))
}

// SetPairNear records the agent that connected in a run of a pair.
func (f *Fleet) SetPairNear(ctx context.Context, pair, near string) error {
	return f.together(ctx, func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, "UPDATE pair SET near = $1 WHERE key = $2", near, pair)
		return err
	})
}

// End is how a job ended without a result.
type End struct {
	State  mesh.State
	Reason mesh.Reason
	Detail string
	// Spent reports that the run may have moved payload: it stays charged to the budgets.
	Spent bool
}

// Finish ends jobs, by ID, that have not ended. Each direction of their pairs shows the reason in Grid.
func (f *Fleet) Finish(ctx context.Context, ends map[string]End, now time.Time) error {
	if len(ends) == 0 {
		return nil
	}
	return f.together(ctx, func(ctx context.Context, tx *sql.Tx) error {
		return eachRows(slices.Sorted(maps.Keys(ends)), func(some []string) error {
			return finish(ctx, tx, some, ends, now)
		})
	})
}

// finish ends some jobs with one statement for the jobs and one for the grid.
func finish(ctx context.Context, tx *sql.Tx, some []string, ends map[string]End, now time.Time) error {
	v := values{args: []any{now.UnixNano()}, types: []string{"TEXT", "TEXT", "TEXT", "TEXT", "BIGINT"}}
	for _, id := range some {
		spent := 0
		if ends[id].Spent {
			spent = 1
		}
		v.add(id, string(ends[id].State), string(ends[id].Reason), plain(ends[id].Detail), spent)
	}
	rows, err := tx.QueryContext(ctx, "UPDATE job SET state = e.state, reason = e.reason, detail = e.detail, "+
		"ended_ns = $1, charged = charged * e.spent FROM (SELECT column1 AS id, column2 AS state, column3 AS reason, "+
		"column4 AS detail, column5 AS spent FROM (VALUES "+v.text.String()+") AS v) AS e WHERE job.id = e.id AND "+
		"job.state IN ('due', 'granted') RETURNING job.id, task, a, b", v.args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	last := map[[3]string]string{} // run by task, sender and receiver: a statement changes a row once
	for rows.Next() {
		var id, task, a, b string
		if err := rows.Scan(&id, &task, &a, &b); err != nil {
			return err
		}
		last[[3]string{task, a, b}] = id
		last[[3]string{task, b, a}] = id
	}
	err = errors.Join(rows.Err(), rows.Close())
	if err != nil || len(last) == 0 {
		return err
	}
	var cells values
	for key, id := range last {
		unreachable := 0
		if ends[id].Reason == mesh.Unreachable {
			unreachable = 1
		}
		cells.add(key[0], key[1], key[2], id, now.UnixNano(), string(ends[id].State), string(ends[id].Reason), unreachable)
	}
	_, err = tx.ExecContext(ctx, "INSERT INTO path_last(task, sender, receiver, run, at_ns, state, reason, "+
		"unreachable) VALUES "+cells.text.String()+" ON CONFLICT(task, sender, receiver) DO UPDATE SET run = excluded.run, "+
		"at_ns = excluded.at_ns, state = excluded.state, reason = excluded.reason, "+
		"unreachable = path_last.unreachable + excluded.unreachable", cells.args...)
	return err
}

const selectJob = "SELECT id, pair, task, a, b, near, origin, due_ns, late_ns, state, reason, detail, epoch, " +
	"granted_ns, until_ns, ended_ns, charged, near_up, near_down, far_up, far_down, " +
	"near_up_bps, near_down_bps, far_up_ns, far_down_ns FROM job"

func scanJob(row interface{ Scan(...any) error }) (j Job, err error) {
	var due, late, granted, until, ended int64
	err = row.Scan(&j.ID, &j.Pair, &j.Task, &j.A, &j.B, &j.Near, &j.Origin, &due, &late, &j.State, &j.Reason, &j.Detail,
		&j.Epoch, &granted, &until, &ended, &j.Charged, &j.NearUp, &j.NearDown, &j.FarUp, &j.FarDown,
		&j.NearUpBps, &j.NearDownBps, &j.FarUpNs, &j.FarDownNs)
	j.Due = moment(due)
	j.Late = moment(late)
	j.Granted = moment(granted)
	j.Until = moment(until)
	j.Ended = moment(ended)
	return j, err
}

// OpenJobs returns the jobs that have not ended, in the order in which they became due.
func (f *Fleet) OpenJobs(ctx context.Context) (jobs []Job, err error) {
	err = f.query(ctx, func(rows *sql.Rows) error {
		j, err := scanJob(rows)
		jobs = append(jobs, j)
		return err
	}, selectJob+" WHERE state IN ('due', 'granted') ORDER BY due_ns, id")
	return jobs, err
}

// JobFilter selects jobs.
type JobFilter struct {
	State mesh.State // "" is all
	Pair  string     // "" is all
	A, B  string     // agents in any order; "" is all
	Limit int        // newest jobs; 0 is 100
}

// Jobs returns jobs, the newest first, and last those of a clock that was set back.
func (f *Fleet) Jobs(ctx context.Context, filter JobFilter) (jobs []Job, err error) {
	limit := filter.Limit
	if limit <= 0 {
		limit = 100
	}
	where := " WHERE ($1 = '' OR state = $1) AND ($2 = '' OR a = $2 OR b = $2) AND ($3 = '' OR a = $3 OR b = $3) "
	args := []any{string(filter.State), filter.A, filter.B, limit, futureAfter()}
	if filter.Pair != "" { // so that its index is used
		where += "AND pair = $6 "
		args = append(args, filter.Pair)
	}
	for _, part := range []string{"AND due_ns <= $5 ", "AND due_ns > $5 "} {
		err = f.query(ctx, func(rows *sql.Rows) error {
			j, err := scanJob(rows)
			jobs = append(jobs, j)
			return err
		}, selectJob+where+part+"ORDER BY due_ns DESC, id DESC LIMIT $4", args...)
		if err != nil || len(jobs) >= limit {
			break
		}
		args[3] = limit - len(jobs)
	}
	return jobs, err
}

// futureAfter returns a time in nanoseconds. Later ones in the database are of a clock that was set back since: the
// clocks of the hub and of a host that reads its database differ by less.
func futureAfter() int64 { return time.Now().Add(5 * time.Minute).UnixNano() }

// Job returns a job. The error is ErrNotFound without it.
func (f *Fleet) Job(ctx context.Context, id string) (Job, error) {
	j, err := scanJob(f.s.db.QueryRowContext(ctx, selectJob+" WHERE id = $1", id))
	if errors.Is(err, sql.ErrNoRows) {
		err = ErrNotFound
	}
	return j, err
}

// CountJobs returns the number of jobs by state and reason since a time.
func (f *Fleet) CountJobs(ctx context.Context, since time.Time) (counts map[End]int64, err error) {
	counts = map[End]int64{}
	err = f.query(ctx, func(rows *sql.Rows) error {
		var end End
		var n int64
		err := rows.Scan(&end.State, &end.Reason, &n)
		counts[end] = n
		return err
	}, "SELECT state, reason, count(*) FROM job WHERE due_ns >= $1 GROUP BY state, reason", since.UnixNano())
	return counts, err
}

// TrimJobs removes ended jobs that were due before a time.
func (f *Fleet) TrimJobs(ctx context.Context, before time.Time) error {
	return f.exec(ctx, "DELETE FROM job WHERE due_ns < $1 AND state NOT IN ('due', 'granted')", nanoseconds(before))
}
