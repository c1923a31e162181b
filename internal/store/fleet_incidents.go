package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/changepoint"
	"github.com/fullpipe-net/fullpipe/internal/fleet/incident"
	"github.com/fullpipe-net/fullpipe/internal/recheck"
)

// Levels are the levels of a direction before its newest result.
type Levels struct {
	Task, Sender, Receiver string
	Goodput, RTT           recheck.Level
}

// SetLevels records the levels of directions in the grid.
func (f *Fleet) SetLevels(ctx context.Context, all []Levels) error {
	if len(all) == 0 {
		return nil
	}
	known := func(level float64) sql.NullFloat64 { return sql.NullFloat64{Float64: level, Valid: level > 0} }
	return f.together(ctx, func(ctx context.Context, tx *sql.Tx) error {
		for _, l := range all {
			_, err := tx.ExecContext(ctx, "UPDATE path_last SET usual_bps = $1, within_bps = $2, usual_rtt_s = $3, "+
				"within_rtt_s = $4, slow_ns = $5, delayed_ns = $6 WHERE task = $7 AND sender = $8 AND receiver = $9",
				known(l.Goodput.Usual.Level), l.Goodput.Usual.Within, known(l.RTT.Usual.Level), l.RTT.Usual.Within,
				nanoseconds(l.Goodput.Worse), nanoseconds(l.RTT.Worse), l.Task, l.Sender, l.Receiver)
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// minUnreachable is how many runs in a row find no connection before a path is unreachable.
const minUnreachable = 2

// Directions returns the state of each direction that has run, without its pair, sites and links, by name: those of a
// task between two agents; "" is all.
func (f *Fleet) Directions(ctx context.Context, task, a, b string) (map[incident.Path]incident.Direction, error) {
	all := map[incident.Path]incident.Direction{}
	where := ""
	var args []any
	if task != "" {
		where = " WHERE task = $1 AND (sender = $2 AND receiver = $3 OR sender = $3 AND receiver = $2)"
		args = []any{task, a, b}
	}
	err := f.query(ctx, func(rows *sql.Rows) error {
		var d incident.Direction
		var at, measured, slow, delayed int64
		var goodput, usual, rtt, usualRTT sql.NullFloat64
		var within, withinRTT float64
		unreachable := 0
		err := rows.Scan(&d.Task, &d.From, &d.To, &at, &measured, &goodput, &usual, &within, &rtt, &usualRTT, &withinRTT,
			&slow, &delayed, &unreachable, &d.Limiter, &d.WindowBytes)
		d.Ended = moment(at)
		d.Measured = moment(measured)
		d.GoodputBps = goodput.Float64
		d.RTTMinS = rtt.Float64
		d.Goodput = recheck.Level{Usual: changepoint.Past{Level: usual.Float64, Within: within}, Worse: moment(slow)}
		d.RTT = recheck.Level{Usual: changepoint.Past{Level: usualRTT.Float64, Within: withinRTT}, Worse: moment(delayed)}
		d.Unreachable.Off = unreachable > 0 && measured > 0 // two hosts that never reached each other are no news
		if unreachable >= minUnreachable && d.Unreachable.Off {
			d.Unreachable.Since = d.Ended
		}
		all[incident.Path{Task: d.Task, From: d.From, To: d.To}] = d
		return err
	}, "SELECT task, sender, receiver, at_ns, measured_ns, goodput_bps, usual_bps, within_bps, rtt_min_s, usual_rtt_s, "+
		"within_rtt_s, slow_ns, delayed_ns, unreachable, limiter, window_bytes FROM path_last"+where, args...)
	return all, err
}

// Incidents returns the incidents that are open, or were resolved since a time: the open ones first, then the newest.
func (f *Fleet) Incidents(ctx context.Context, since time.Time) (all []incident.Incident, err error) {
	err = f.query(ctx, func(rows *sql.Rows) error {
		var doc string
		var one incident.Incident
		if err := rows.Scan(&doc); err != nil {
			return err
		}
		err := json.Unmarshal([]byte(doc), &one)
		all = append(all, one)
		return err
	}, "SELECT doc FROM incident WHERE resolved_ns = 0 OR resolved_ns >= $1 "+
		"ORDER BY CASE WHEN resolved_ns = 0 THEN 0 ELSE 1 END, opened_ns DESC, id", nanoseconds(since))
	return all, err
}

// Notice is what one receiver has not taken yet.
type Notice struct {
	ID     string // the same each time that it is sent
	Target string // an alert of the mesh file; "" is the command line's
	At     time.Time
	incident.Notice
}

// SaveDecision stores incidents, their notices, and the times at which pairs were made due, in one transaction, if this
// hub leads.
func (f *Fleet) SaveDecision(ctx context.Context, lead Lead, d incident.Decision, notices []Notice,
	now time.Time) error {
	return f.change(ctx, func(tx *sql.Tx) error {
		var leads bool
		if err := tx.QueryRowContext(ctx, "SELECT "+f.leads(1, 2), lead.Epoch, lead.Holder).Scan(&leads); err != nil {
			return err
		}
		if !leads {
			return ErrNotLeading
		}
		for i := range d.Incidents {
			one := &d.Incidents[i]
			doc, err := json.Marshal(one)
			if err != nil {
				return err
			}
			_, err = tx.ExecContext(ctx, "INSERT INTO incident(id, opened_ns, resolved_ns, doc) VALUES($1,$2,$3,$4) "+
				"ON CONFLICT(id) DO UPDATE SET opened_ns = excluded.opened_ns, resolved_ns = excluded.resolved_ns, "+
				"doc = excluded.doc", one.ID, nanoseconds(one.OpenedAt), nanoseconds(one.ResolvedAt), plain(string(doc)))
			if err != nil {
				return err
			}
		}
		for _, n := range notices {
			doc, err := json.Marshal(n.Notice)
			if err != nil {
				return err
			}
			_, err = tx.ExecContext(ctx, "INSERT INTO notice(id, target, made_ns, doc) VALUES($1,$2,$3,$4) "+
				"ON CONFLICT DO NOTHING", n.ID, n.Target, nanoseconds(n.At), plain(string(doc)))
			if err != nil {
				return err
			}
		}
		return eachRows(slices.Clone(d.Pairs), func(some []string) error {
			v := values{args: []any{nanoseconds(now)}, types: []string{"TEXT"}}
			for _, key := range some {
				v.add(key)
			}
			_, err := tx.ExecContext(ctx, "UPDATE pair SET asked_ns = $1 WHERE key IN (SELECT column1 FROM (VALUES "+
				v.text.String()+") AS v)", v.args...)
			return err
		})
	})
}

// Notices returns what receivers have not taken yet, the oldest first.
func (f *Fleet) Notices(ctx context.Context) (all []Notice, err error) {
	err = f.query(ctx, func(rows *sql.Rows) error {
		var n Notice
		var at int64
		var doc string
		if err := rows.Scan(&n.ID, &n.Target, &at, &doc); err != nil {
			return err
		}
		n.At = moment(at)
		if err := json.Unmarshal([]byte(doc), &n.Notice); err != nil {
			return fmt.Errorf("notice %s: %w", n.ID, err)
		}
		all = append(all, n)
		return nil
	}, "SELECT id, target, made_ns, doc FROM notice ORDER BY made_ns, id")
	return all, err
}

// Taken removes a notice that its receiver has taken.
func (f *Fleet) Taken(ctx context.Context, id string) error {
	return f.exec(ctx, "DELETE FROM notice WHERE id = $1", id)
}

// TrimIncidents removes incidents that were resolved before a time, and notices that were made before it.
func (f *Fleet) TrimIncidents(ctx context.Context, before time.Time) error {
	return f.change(ctx, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, "DELETE FROM incident WHERE resolved_ns > 0 AND resolved_ns < $1", nanoseconds(before))
		if err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, "DELETE FROM notice WHERE made_ns < $1", nanoseconds(before))
		return err
	})
}

// AddSilence stores a silence.
func (f *Fleet) AddSilence(ctx context.Context, s incident.Silence) error {
	return f.exec(ctx, "INSERT INTO silence(id, kind, name, until_ns, made_by) VALUES($1,$2,$3,$4,$5)", s.ID, s.Kind,
		plain(s.Name), nanoseconds(s.Until), plain(s.By))
}

// Silences returns the silences that have not ended, those that end first before others.
func (f *Fleet) Silences(ctx context.Context, now time.Time) (all []incident.Silence, err error) {
	err = f.query(ctx, func(rows *sql.Rows) error {
		var s incident.Silence
		var until int64
		err := rows.Scan(&s.ID, &s.Kind, &s.Name, &until, &s.By)
		s.Until = moment(until)
		all = append(all, s)
		return err
	}, "SELECT id, kind, name, until_ns, made_by FROM silence WHERE until_ns > $1 ORDER BY until_ns, id", nanoseconds(now))
	return all, err
}

// RemoveSilence ends a silence.
func (f *Fleet) RemoveSilence(ctx context.Context, id string) error {
	return f.exec(ctx, "DELETE FROM silence WHERE id = $1", id)
}
