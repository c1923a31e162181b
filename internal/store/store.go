// Package store keeps records: the user's history, one SQLite file in the state directory.
// Several processes may use it at once; what is stored twice is there once.
package store

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"modernc.org/sqlite" // pure Go
	sqlite3 "modernc.org/sqlite/lib"
)

// Store is an open history.
type Store struct{ db *sql.DB }

// ErrNotFound says that the history holds no such run.
var ErrNotFound = errors.New("no such run in the history")

//go:embed migrations/*.sql
var migrations embed.FS

// Variable names another directory for the history alone.
const Variable = "FULLPIPE_HISTORY"

// Dir is where a user's history lives: $XDG_STATE_HOME/fullpipe.
func Dir() (string, error) {
	for _, name := range []string{Variable, "FULLPIPE_STATE"} {
		if dir := os.Getenv(name); dir != "" {
			return dir, nil
		}
	}
	if dir := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "fullpipe"), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("a place for the history: %w", err)
	}
	return DirIn(home), nil
}

// DirIn is where the history of a home's owner lives where nothing else is said.
func DirIn(home string) string { return filepath.Join(home, ".local", "state", "fullpipe") }

// wait is how long another process's writing is waited for.
const wait = 5 * time.Second

// Open opens the history in a directory, which it makes, readable for its owner alone.
func Open(ctx context.Context, dir string) (*Store, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("the history's directory: %w", err)
	}
	path := filepath.Join(dir, "history.db")
	if err := touch(path); err != nil {
		return nil, err
	}
	mode := "WAL"
	if remote(dir) { // its shared memory would be no memory that is shared
		mode = "DELETE"
	}
	db, err := sql.Open("sqlite", "file:"+strings.NewReplacer("%", "%25", "?", "%3f", "#", "%23").Replace(path)+
		fmt.Sprintf("?_pragma=busy_timeout(%d)&_pragma=foreign_keys(1)&_pragma=synchronous(NORMAL)&_txlock=immediate",
			wait.Milliseconds()))
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	s := &Store{db}
	if err := s.begin(ctx, mode); err != nil {
		db.Close()
		return nil, fmt.Errorf("the history in %s: %w", path, err)
	}
	return s, nil
}

// touch makes the file before SQLite would, for its owner alone, and refuses what is no
// regular file.
func touch(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err == nil {
		return f.Close()
	}
	if !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("the history: %w", err)
	}
	info, err := os.Stat(path)
	if err != nil {
		return fmt.Errorf("the history: %w", err)
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("the history: %s is no regular file", path)
	}
	return nil
}

// begin sets the journal's mode and brings the tables up to date. On a new file several
// processes race for the mode; who loses tries again.
func (s *Store) begin(ctx context.Context, mode string) error {
	for until := time.Now().Add(wait); ; {
		var is string
		err := s.db.QueryRowContext(ctx, "PRAGMA journal_mode = "+mode).Scan(&is)
		if err == nil {
			break
		}
		if !busy(err) || time.Now().After(until) {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(10 * time.Millisecond):
		}
	}
	return s.migrate(ctx)
}

func busy(err error) bool {
	var code *sqlite.Error
	return errors.As(err, &code) && (code.Code()&0xff == sqlite3.SQLITE_BUSY || code.Code()&0xff == sqlite3.SQLITE_LOCKED)
}

// migrate runs what is new of the numbered files, all or nothing. A history of a newer
// version is refused, since this one could not keep its rules.
func (s *Store) migrate(ctx context.Context) error {
	files, err := fs.Glob(migrations, "migrations/*.sql")
	if err != nil {
		return err
	}
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	var version int
	if err := tx.QueryRowContext(ctx, "PRAGMA user_version").Scan(&version); err != nil {
		return err
	}
	if version > len(files) {
		return fmt.Errorf("it is of a newer fullpipe (its version %d, known are %d)", version, len(files))
	}
	for _, file := range files[version:] {
		text, err := migrations.ReadFile(file)
		if err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, string(text)); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
	}
	if _, err := tx.ExecContext(ctx, fmt.Sprintf("PRAGMA user_version = %d", len(files))); err != nil {
		return err
	}
	return tx.Commit()
}

// Close ends the use of the history.
func (s *Store) Close() error { return s.db.Close() }
