// Package store keeps records in the user's history: one SQLite file in the state directory, or a PostgreSQL
// database shared by several hosts. Several processes may use it at once. A record that is added twice is stored
// once.
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

	"github.com/fullpipe-net/fullpipe/internal/outbox"
)

// Store is an open history.
type Store struct {
	// ClientResultsADay limits the results of one client that Keep stores within 24 hours; 0 is
	// DefaultClientResultsADay.
	ClientResultsADay int

	db  *sql.DB
	dir string // user's state directory
	dialect
	path   string      // of SQLite's file; "" with a server
	outbox *outbox.Box // nil: add stores at once or fails
}

// dialect contains the differences between the databases. All other SQL works in both, with $1 for parameters.
type dialect struct {
	untilCommit string                                        // ends a SELECT whose rows must not change
	toChange    string                                        // ends a SELECT whose rows are then updated
	oneState    *sql.TxOptions                                // of a transaction that reads several tables
	now         func() string                                 // the time by the clock of all hubs, ns since 1970, as SQL
	fleetLock   string                                        // lets one process at a time migrate the fleet's tables
	types       *strings.Replacer                             // of the migrations' types; nil: as they are
	mayTrim     string                                        // asks whether to trim; "" is yes
	usedBytes   func(context.Context, *sql.Tx) (int64, error) // nil: no size limit
}

// ErrNotFound reports that the history has no such run.
var ErrNotFound = errors.New("no such run in the history")

// DefaultClientResultsADay limits the stored results of one client of a server within 24 hours.
const DefaultClientResultsADay = 50

// ErrClientQuota reports that the client's quota of stored results is used up.
var ErrClientQuota = outbox.ErrClientQuota

// ErrNoLabel reports that the run has no label to remove.
var ErrNoLabel = errors.New("the run has no such label")

// migrations are written for SQLite; see postgresTypes.
//
//go:embed migrations/*.sql migrations/fleet/*.sql
var migrations embed.FS

// Variable names the directory of the history. secret.Store is the URL of one on a server; set but empty: no history.
const Variable = "FULLPIPE_HISTORY"

// Dir returns the directory of the user's history, by default $XDG_STATE_HOME/fullpipe.
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
		return "", fmt.Errorf("history directory: %w", err)
	}
	return DirIn(home), nil
}

// DirIn returns the default history directory below a home directory.
func DirIn(home string) string { return filepath.Join(home, ".local", "state", "fullpipe") }

// OpenAt opens the history at a postgres:// URL, with its outbox in dir. With an empty URL it opens the history
// file in dir.
func OpenAt(ctx context.Context, dir, url string) (*Store, error) {
	if url == "" {
		return Open(ctx, dir)
	}
	return openPostgres(dir, url)
}

// Close closes the database.
func (s *Store) Close() error { return s.db.Close() }

// pending returns the migrations that a history lacks. They are numbered files, and the version is how many have
// run. A newer history is refused, because its rules are unknown.
func pending(version int) (texts []string, latest int, err error) {
	return pendingIn("migrations", version)
}

func pendingIn(dir string, version int) (texts []string, latest int, err error) {
	files, err := fs.Glob(migrations, dir+"/*.sql")
	if err != nil {
		return nil, 0, err
	}
	latest = len(files)
	if version > latest {
		return nil, latest, fmt.Errorf("it was made by a newer fullpipe (version %d, supported up to %d)", version, latest)
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
