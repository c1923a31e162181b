package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/fleet/mesh"
)

// Fleet is the part of a history that a hub uses: agents, jobs, and the lead of one hub over others.
//
// Life of a run:
//
//  1. Due inserts its job; the job's ID is the ID of the run and of its document.
//  2. Grant orders it, if this hub still leads.
//  3. AddResult stores the document of the agent that was ordered and ends the job, in one transaction.
//  4. Finish ends a job without a result, with a reason.
type Fleet struct {
	s      *Store
	writes writes
}

// OpenFleet opens a hub's history, as OpenAt does, with the tables of a fleet. Each record is on the disk when
// AddResult returns; in other histories a power cut may lose the last ones.
func OpenFleet(ctx context.Context, dir, url string) (*Fleet, error) {
	var s *Store
	var err error
	if url == "" {
		s, err = openDir(ctx, dir, "FULL")
	} else {
		s, err = openPostgres(dir, url)
	}
	if err != nil {
		return nil, err
	}
	f := &Fleet{s: s}
	if err := f.upToDate(ctx); err != nil {
		s.Close()
		return nil, fmt.Errorf("the fleet's tables: %w", err)
	}
	return f, nil
}

// upToDate migrates the fleet's tables if they are not current. Tables that are current need no
// lock, so readers do not wait for a hub that writes.
func (f *Fleet) upToDate(ctx context.Context) error {
	version := 0
	if f.s.db.QueryRowContext(ctx, "SELECT version FROM fleet_version").Scan(&version) == nil {
		if texts, _, err := pendingIn("migrations/fleet", version); err != nil || len(texts) == 0 {
			return err
		}
	}
	return f.change(ctx, func(tx *sql.Tx) error { return f.migrate(ctx, tx) })
}

// migrate brings the fleet's tables up to date.
func (f *Fleet) migrate(ctx context.Context, tx *sql.Tx) error {
	if _, err := tx.ExecContext(ctx, f.s.fleetLock); err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, "CREATE TABLE IF NOT EXISTS fleet_version (one INTEGER PRIMARY KEY CHECK (one = 1), "+
		"version INTEGER NOT NULL)"); err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, "INSERT INTO fleet_version VALUES(1, 0) ON CONFLICT DO NOTHING"); err != nil {
		return err
	}
	version := 0
	if err := tx.QueryRowContext(ctx, "SELECT version FROM fleet_version").Scan(&version); err != nil {
		return err
	}
	texts, latest, err := pendingIn("migrations/fleet", version)
	if err != nil {
		return err
	}
	for _, text := range texts {
		if f.s.types != nil {
			text = f.s.types.Replace(text)
		}
		for statement := range strings.SplitSeq(text, ";\n") {
			if strings.TrimSpace(statement) == "" {
				continue
			}
			if _, err := tx.ExecContext(ctx, statement); err != nil {
				return err
			}
		}
	}
	_, err = tx.ExecContext(ctx, "UPDATE fleet_version SET version = $1", latest)
	return err
}

// Store returns the whole history.
func (f *Fleet) Store() *Store { return f.s }

// Close closes the history.
func (f *Fleet) Close() error { return f.s.Close() }

// Mesh returns the newest mesh file and its version, "" and 0 without one.
func (f *Fleet) Mesh(ctx context.Context) (text string, version int64, err error) {
	err = f.s.db.QueryRowContext(ctx, "SELECT text, version FROM mesh ORDER BY version DESC LIMIT 1").Scan(&text, &version)
	if errors.Is(err, sql.ErrNoRows) {
		return "", 0, nil
	}
	return text, version, err
}

// SetMesh stores a checked mesh file as the newest. by is the user.
func (f *Fleet) SetMesh(ctx context.Context, text, by string, now time.Time) (version int64, err error) {
	if _, err := mesh.Parse([]byte(text)); err != nil {
		return 0, err
	}
	err = f.change(ctx, func(tx *sql.Tx) error {
		if err := tx.QueryRowContext(ctx, "SELECT coalesce(max(version), 0) + 1 FROM mesh").Scan(&version); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, "INSERT INTO mesh(version, text, made_by, made_ns) VALUES($1,$2,$3,$4)", version, text,
			plain(by), now.UnixNano())
		return err
	})
	return version, err
}

// AuditEntry is a change that a user made.
type AuditEntry struct {
	ID         string
	At         time.Time
	By, Action string
	Detail     string
}

// Audit records a change that a user made.
func (f *Fleet) Audit(ctx context.Context, e AuditEntry) error {
	return f.exec(ctx, "INSERT INTO audit(id, at_ns, made_by, what, detail) VALUES($1,$2,$3,$4,$5)", e.ID, e.At.UnixNano(),
		plain(e.By), plain(e.Action), plain(e.Detail))
}

// AuditLog returns the newest entries first.
func (f *Fleet) AuditLog(ctx context.Context, limit int) (entries []AuditEntry, err error) {
	err = f.query(ctx, func(rows *sql.Rows) error {
		var e AuditEntry
		var at int64
		err := rows.Scan(&e.ID, &at, &e.By, &e.Action, &e.Detail)
		e.At = moment(at)
		entries = append(entries, e)
		return err
	}, "SELECT id, at_ns, made_by, what, detail FROM audit ORDER BY at_ns DESC, id DESC LIMIT $1", limit)
	return entries, err
}

// Account is a user of the pages and the API.
type Account struct{ Name, Role, TokenHash string }

// SetAccount adds or replaces a user. With an empty role it removes the user.
func (f *Fleet) SetAccount(ctx context.Context, a Account) error {
	if a.Role == "" {
		return f.exec(ctx, "DELETE FROM account WHERE name = $1", a.Name)
	}
	return f.exec(ctx, "INSERT INTO account(name, role, token) VALUES($1,$2,$3) ON CONFLICT(name) DO UPDATE SET "+
		"role = excluded.role, token = excluded.token", plain(a.Name), a.Role, a.TokenHash)
}

// Accounts returns all users.
func (f *Fleet) Accounts(ctx context.Context) (all []Account, err error) {
	err = f.query(ctx, func(rows *sql.Rows) error {
		var a Account
		err := rows.Scan(&a.Name, &a.Role, &a.TokenHash)
		all = append(all, a)
		return err
	}, "SELECT name, role, token FROM account ORDER BY name")
	return all, err
}

// AccountByToken returns the user whose token has a hash. The error is ErrNotFound without one.
func (f *Fleet) AccountByToken(ctx context.Context, hash string) (a Account, err error) {
	defer f.s.explain(&err)
	err = f.s.db.QueryRowContext(ctx, "SELECT name, role, token FROM account WHERE token = $1", hash).Scan(&a.Name,
		&a.Role, &a.TokenHash)
	if errors.Is(err, sql.ErrNoRows) {
		err = ErrNotFound
	}
	return a, err
}

// change runs statements in one transaction.
func (f *Fleet) change(ctx context.Context, do func(*sql.Tx) error) (err error) {
	defer f.s.explain(&err)
	tx, err := f.s.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if err := do(tx); err != nil {
		return err
	}
	return tx.Commit()
}

func (f *Fleet) exec(ctx context.Context, statement string, args ...any) (err error) {
	defer f.s.explain(&err)
	_, err = f.s.db.ExecContext(ctx, statement, args...)
	return err
}

func (f *Fleet) query(ctx context.Context, row func(*sql.Rows) error, statement string, args ...any) error {
	rows, err := f.s.db.QueryContext(ctx, statement, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := row(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

// moment returns the time of a column, the zero time for 0.
func moment(ns int64) time.Time {
	if ns == 0 {
		return time.Time{}
	}
	return time.Unix(0, ns).UTC()
}

// nanoseconds is the opposite of moment.
func nanoseconds(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixNano()
}
