package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/fleet/mesh"
	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// ErrNotAsked reports a result of a run that was not ordered of this agent. No retry stores it.
var ErrNotAsked = errors.New("this run was not ordered of this agent")

// maxClockOff is the greatest difference between a document's time and the hub's that is taken for the time between an
// order and its start.
const maxClockOff = 5 * time.Second

// AddResult decodes the document of a run and adds it.
func (f *Fleet) AddResult(ctx context.Context, agent string, data []byte, now time.Time) (job Job, err error) {
	doc, err := record.Decode(data, nil)
	if err != nil {
		return job, &RefusedError{err}
	}
	return f.AddDocument(ctx, agent, doc, data, now)
}

// AddDocument stores the document of a run that this agent was ordered to make, and ends its job. data is its text. A
// second delivery changes nothing. The error is a RefusedError where no retry helps. Results that arrive together share
// a commit.
func (f *Fleet) AddDocument(ctx context.Context, agent string, doc record.Document, data []byte,
	now time.Time) (job Job, err error) {
	e, err := validated(doc)
	if err != nil {
		return job, &RefusedError{err}
	}
	r := &result{e, agent, pack(data), now}
	return f.await(ctx, func(ctx context.Context, tx *sql.Tx) (Job, error) { return f.addResult(ctx, tx, r) })
}

// result is a document to store.
type result struct {
	*entry
	agent  string
	packed []byte
	at     time.Time
}

// addResult stores a result in a transaction.
func (f *Fleet) addResult(ctx context.Context, tx *sql.Tx, r *result) (Job, error) {
	job, err := scanJob(tx.QueryRowContext(ctx, selectJob+" WHERE id = $1"+f.s.toChange, r.ID))
	if errors.Is(err, sql.ErrNoRows) || err == nil && job.Near != r.agent {
		return job, &RefusedError{ErrNotAsked}
	}
	if err != nil || job.State == mesh.Done {
		return job, err
	}
	if job.State == mesh.Failed { // perhaps by this document
		stored := 0
		err := tx.QueryRowContext(ctx, "SELECT count(*) FROM run WHERE id = $1", r.ID).Scan(&stored)
		if err != nil || stored > 0 {
			return job, err
		}
	}
	if job.State != mesh.Granted && job.State != mesh.Lost {
		return job, &RefusedError{fmt.Errorf("%w: it has ended as %s", ErrNotAsked, job.State)}
	}
	if r.PathKey != FleetPathKey(job.Task, r.agent, job.Other(r.agent)) {
		return job, &RefusedError{fmt.Errorf("%w: the document is of another path", ErrNotAsked)}
	}
	if off := r.started.Sub(job.Granted); off < -maxClockOff || off > job.Until.Sub(job.Granted)+maxClockOff {
		r.started = job.Granted // one series has one clock
		if r.Labels == nil {
			r.Labels = map[string]string{}
		}
		r.Labels["clock_off"] = off.Round(time.Second).String()
	}
	if _, err := f.s.insert(ctx, tx, r.entry, r.packed, nil, 0, ""); err != nil {
		if errors.Is(err, ErrGone) {
			return job, &RefusedError{err}
		}
		return job, err
	}
	job.State = mesh.Done
	job.Reason = ""
	job.Ended = r.at
	if r.Outcome != record.Done {
		job.State = mesh.Failed
		job.Reason = failure(r.Outcome)
	}
	job.NearUp, job.NearUpBps = countOf(r.doc, transfer.Up)
	job.NearDown, job.NearDownBps = countOf(r.doc, transfer.Down)
	if job.State == mesh.Done { // the payload of a run that broke off is not known: its reservation stays charged
		job.Charged = job.NearUp.Int64 + job.NearDown.Int64
	}
	_, err = tx.ExecContext(ctx, "UPDATE job SET state = $1, reason = $2, detail = '', ended_ns = $3, near_up = $4, "+
		"near_down = $5, charged = $6, near_up_bps = $8, near_down_bps = $9 WHERE id = $7", string(job.State),
		string(job.Reason), r.at.UnixNano(), job.NearUp, job.NearDown, job.Charged, job.ID, job.NearUpBps, job.NearDownBps)
	if err != nil {
		return job, err
	}
	return job, f.setLast(ctx, tx, job, r)
}

// FleetPathKey returns the series of a pair's runs of a task, with the near agent as its host.
func FleetPathKey(task, near, far string) string {
	return record.SeriesID{HostID: near, Far: far, Kind: "fleet", Protocol: "tcp", Others: "task=" + task}.Key()
}

// countOf returns the payload of a direction in bytes, as a document has it.
func countOf(doc record.Document, direction transfer.Direction) (n sql.NullInt64, bps sql.NullFloat64) {
	m, ok := doc.(*record.Measure)
	if !ok {
		return n, bps
	}
	for i := range m.Directions {
		if d := &m.Directions[i]; d.Direction == direction && d.Bytes != nil {
			n = sql.NullInt64{Int64: *d.Bytes, Valid: true}
			if d.GoodputBps != nil {
				bps = sql.NullFloat64{Float64: *d.GoodputBps, Valid: true}
			}
		}
	}
	return n, bps
}

// failure returns the reason of a run whose document says that it failed.
func failure(outcome record.Outcome) mesh.Reason {
	if outcome == record.Interrupted {
		return mesh.Interrupted
	}
	return mesh.FarError
}

// RefusedError is a result that is never stored. The agent forgets it.
type RefusedError struct{ Err error }

func (e *RefusedError) Error() string { return e.Err.Error() }
func (e *RefusedError) Unwrap() error { return e.Err }

// setLast updates the grid with a run, unless the grid has a later one. One that is later than now is of a clock that
// was set back. Up is the direction in which the near agent sends.
func (f *Fleet) setLast(ctx context.Context, tx *sql.Tx, job Job, r *result) error {
	far := job.Other(job.Near)
	figures := map[string]record.Figure{}
	for _, figure := range r.sum.Figures {
		figures[figure.Direction] = figure
	}
	directions := map[[2]string]string{{job.Near, far}: "up", {far, job.Near}: "down"}
	for _, ends := range [][2]string{{job.A, job.B}, {job.B, job.A}} { // in the order of Finish, so that neither deadlocks
		figure, has := figures[directions[ends]]
		if !has || figure.GoodputBps == nil {
			_, err := tx.ExecContext(ctx, "INSERT INTO path_last(task, sender, receiver, run, at_ns, state, reason) "+
				"VALUES($1,$2,$3,$4,$5,$6,$7) ON CONFLICT(task, sender, receiver) DO UPDATE SET run = excluded.run, "+
				"at_ns = excluded.at_ns, state = excluded.state, reason = excluded.reason "+
				"WHERE path_last.at_ns <= excluded.at_ns OR path_last.at_ns > $8", job.Task, ends[0], ends[1], job.ID,
				r.started.UnixNano(), string(job.State), string(job.Reason), r.at.UnixNano())
			if err != nil {
				return err
			}
			continue
		}
		_, err := tx.ExecContext(ctx, "INSERT INTO path_last(task, sender, receiver, run, at_ns, state, reason, "+
			"goodput_bps, rtt_min_s, limiter, measured, measured_ns, window_bytes) "+
			"VALUES($1,$2,$3,$4,$5,$6,$7,$8,$9,$10,$4,$5,$12) "+
			"ON CONFLICT(task, sender, receiver) DO UPDATE SET run = excluded.run, at_ns = excluded.at_ns, "+
			"state = excluded.state, reason = excluded.reason, goodput_bps = excluded.goodput_bps, "+
			"rtt_min_s = excluded.rtt_min_s, limiter = excluded.limiter, measured = excluded.measured, "+
			"measured_ns = excluded.measured_ns, window_bytes = excluded.window_bytes, unreachable = 0 "+
			"WHERE path_last.measured_ns <= excluded.measured_ns OR "+
			"path_last.measured_ns > $11", job.Task, ends[0], ends[1], job.ID, r.started.UnixNano(), string(job.State),
			string(job.Reason), figure.GoodputBps, figure.RTTMinS, plain(figure.Limiter), r.at.UnixNano(),
			windowOf(r.doc, directions[ends]))
		if err != nil {
			return err
		}
	}
	return nil
}

// windowOf returns the size of the limiter of a direction that is a window or a buffer, 0 for others.
func windowOf(doc record.Document, direction string) int64 {
	m, ok := doc.(*record.Measure)
	if !ok {
		return 0
	}
	for i := range m.Directions {
		d := &m.Directions[i]
		if string(d.Direction) != direction {
			continue
		}
		buffer := map[verdict.Name]*record.Buffer{verdict.ReceiverWindow: d.Windows.ReceiveBuffer,
			verdict.SendBuffer: d.Windows.SendBuffer}[d.Limiter]
		if buffer != nil {
			return int64(buffer.EffectiveBytes)
		}
	}
	return 0
}

// Cell is one direction of the grid: how the last run ended, and the figures of the last that gave some.
type Cell struct {
	Task, Sender, Receiver string
	Run                    string
	At                     time.Time
	State                  mesh.State
	Reason                 mesh.Reason
	GoodputBps             *float64 // nil: never measured
	UsualBps               *float64 // of the runs before; nil: not known yet
	WithinBps              float64  // how far a usual result may lie from UsualBps
	RTTMinS                *float64
	Limiter                string
	LostAt                 []string // places of loss
	Measured               string   // run of the figures
	MeasuredAt             time.Time
	Unconfirmed            string // why the figures are one agent's word; "": they are not
}

// Grid returns the last run of each direction of a task; "" is all tasks.
func (f *Fleet) Grid(ctx context.Context, task string) (cells []Cell, err error) {
	err = f.query(ctx, func(rows *sql.Rows) error {
		var c Cell
		var at, measured int64
		var near, places sql.NullString
		var n Counts
		err := rows.Scan(&c.Task, &c.Sender, &c.Receiver, &c.Run, &at, &c.State, &c.Reason, &c.GoodputBps, &c.UsualBps,
			&c.WithinBps, &c.RTTMinS, &c.Limiter, &c.Measured, &measured, &near, &n.NearUp, &n.NearDown, &n.FarUp, &n.FarDown,
			&n.NearUpBps, &n.NearDownBps, &n.FarUpNs, &n.FarDownNs, &places)
		c.LostAt = listOf(places.String)
		c.Unconfirmed = n.down().unconfirmed()
		if near.String == c.Sender {
			c.Unconfirmed = n.up().unconfirmed()
		}
		c.At = moment(at)
		c.MeasuredAt = moment(measured)
		cells = append(cells, c)
		return err
	}, "SELECT p.task, p.sender, p.receiver, p.run, p.at_ns, p.state, p.reason, p.goodput_bps, p.usual_bps, "+
		"p.within_bps, p.rtt_min_s, p.limiter, p.measured, p.measured_ns, job.near, job.near_up, job.near_down, "+
		"job.far_up, job.far_down, job.near_up_bps, job.near_down_bps, job.far_up_ns, job.far_down_ns, d.lost_at "+
		"FROM path_last p LEFT JOIN job ON job.id = p.measured LEFT JOIN direction d ON d.run = p.measured AND "+
		"d.direction = CASE WHEN job.near = p.sender THEN 'up' ELSE 'down' END WHERE $1 = '' OR p.task = $1 "+
		"ORDER BY p.task, p.sender, p.receiver", task)
	return cells, err
}

// GridRevision returns a text that changes when a run ends, a usual goodput is known, an incident opens or ends, or a
// host joins or leaves. It reads less than Grid.
func (f *Fleet) GridRevision(ctx context.Context) (string, error) {
	var cells, at, measured, usual, agents, incidents int64
	err := f.s.db.QueryRowContext(ctx, "SELECT count(*), CAST(coalesce(sum(at_ns / 1000000), 0) AS BIGINT), "+
		"CAST(coalesce(sum(measured_ns / 1000000), 0) AS BIGINT), count(usual_bps), "+
		"(SELECT count(*) FROM agent WHERE removed_ns = 0), "+
		"(SELECT CAST(coalesce(sum(opened_ns / 1000000 + resolved_ns / 1000000), 0) AS BIGINT) FROM incident) "+
		"FROM path_last").Scan(&cells, &at, &measured, &usual, &agents, &incidents)
	return fmt.Sprintf("%x-%x-%x-%x-%x-%x", cells, at, measured, usual, agents, incidents), err
}

// Event is a change that a result showed.
type Event struct {
	Run, Task, Sender, Receiver string
	Metric, Kind                string // as recheck.Event
	At                          time.Time
	Old, New                    string
}

// AddEvents stores events. One that exists changes nothing, so a hub may compute them again after a restart.
func (f *Fleet) AddEvents(ctx context.Context, events []Event) error {
	return f.change(ctx, func(tx *sql.Tx) error {
		for _, e := range events {
			_, err := tx.ExecContext(ctx, "INSERT INTO event(run, sender, receiver, metric, what, task, at_ns, old_value, "+
				"new_value) VALUES($1,$2,$3,$4,$5,$6,$7,$8,$9) ON CONFLICT DO NOTHING", e.Run, e.Sender, e.Receiver,
				e.Metric, e.Kind, e.Task, e.At.UnixNano(), plain(e.Old), plain(e.New))
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// Events returns events since a time, the newest first, and last those of a clock that was set back.
func (f *Fleet) Events(ctx context.Context, since time.Time, limit int) (events []Event, err error) {
	for _, part := range []string{"at_ns <= $3", "at_ns > $3"} {
		err = f.query(ctx, func(rows *sql.Rows) error {
			var e Event
			var at int64
			err := rows.Scan(&e.Run, &e.Sender, &e.Receiver, &e.Metric, &e.Kind, &e.Task, &at, &e.Old, &e.New)
			e.At = moment(at)
			events = append(events, e)
			return err
		}, "SELECT run, sender, receiver, metric, what, task, at_ns, old_value, new_value FROM event "+
			"WHERE at_ns >= $1 AND "+part+" ORDER BY at_ns DESC, run, sender, receiver, metric LIMIT $2",
			nanoseconds(since), limit-len(events), futureAfter())
		if err != nil || len(events) >= limit {
			break
		}
	}
	return events, err
}
