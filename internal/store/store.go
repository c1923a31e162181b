// Package store keeps records: the user's history, one SQLite file in the state directory,
// or one of several hosts in PostgreSQL. Several processes may use it at once; what is
// stored twice is there once.
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
)

// Store is an open history.
type Store struct {
	// ClientResultsADay is how many results of one client Keep keeps within 24 hours; 0 is DefaultClientResultsADay.
	ClientResultsADay int

	db  *sql.DB
	dir string // the user's state directory
	dialect
	path   string  // of SQLite's file; "": a server's
	outbox *outbox // nil: what is added is kept at once, or not at all
}

// dialect is where the databases differ in what both are asked. Else the SQL is what both
// speak, with $1 for parameters.
type dialect struct {
	untilCommit string                                        // ends a SELECT of what must stay so until then
	toChange    string                                        // ends a SELECT of what is then changed
	oneState    *sql.TxOptions                                // of a transaction that reads one state of several tables
	mayTrim     string                                        // asks whether this transaction is to trim; "" is yes
	usedBytes   func(context.Context, *sql.Tx) (int64, error) // nil: not bounded
}

// ErrNotFound says that the history holds no such run.
var ErrNotFound = errors.New("no such run in the history")

// DefaultClientResultsADay bounds what one client of a server makes a history keep.
const DefaultClientResultsADay = 50

// ErrClientQuota says that enough results of this client are kept for the day.
var ErrClientQuota = errors.New("as many results of this client are kept as may be within 24 hours")

// ErrNoLabel says that a run has no label of the name that was to be taken away.
var ErrNoLabel = errors.New("the run has no such label")

// migrations are written for SQLite; see postgresTypes.
//
//go:embed migrations/*.sql
var migrations embed.FS

const (
	// Variable names another directory for the history alone.
	Variable = "FULLPIPE_HISTORY"
	// URLVariable is the URL of a history that is no file of this host's; set and empty: none.
	URLVariable = "FULLPIPE_STORE"
)

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

// OpenAt opens the history at a URL, postgres://…; "" is the one in the directory, where
// otherwise results wait that the server has not stored yet.
func OpenAt(ctx context.Context, dir, url string) (*Store, error) {
	if url == "" {
		return Open(ctx, dir)
	}
	return openPostgres(dir, url)
}

// Close ends the use of the history.
func (s *Store) Close() error { return s.db.Close() }

// pending are the migrations that a history of a version lacks. They are numbered files, and
// a version is how many of them were run. A history of a newer version is refused, since
// this one could not keep its rules.
func pending(version int) (texts []string, latest int, err error) {
	files, err := fs.Glob(migrations, "migrations/*.sql")
	if err != nil {
		return nil, 0, err
	}
	latest = len(files)
	if version > latest {
		return nil, latest, fmt.Errorf("it is of a newer fullpipe (its version %d, known are %d)", version, latest)
	}
	for _, file := range files[version:] {
		text, err := migrations.ReadFile(file)
		if err != nil {
			return nil, latest, err
		}
		texts = append(texts, string(text))
	}
	return texts, latest, nil
}
