package store

import (
	"errors"
	"fmt"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// FullError reports a change that was not made because the disk of the history file is full.
type FullError struct {
	Path string
	Err  error
}

func (e *FullError) Error() string {
	return fmt.Sprintf("the history in %s: disk full, nothing changed", e.Path)
}

func (e *FullError) Unwrap() error { return e.Err }

// Try returns the advice. A deletion needs space too, because SQLite first writes it to the journal.
func (e *FullError) Try() string {
	return "free a few MiB on that disk and repeat the command; history forget needs that room too"
}

// explain turns SQLite's disk-full errors into a *FullError.
func (s *Store) explain(err *error) {
	var code *sqlite.Error
	if s.path != "" && errors.As(*err, &code) &&
		(code.Code()&0xff == sqlite3.SQLITE_FULL || code.Code() == sqlite3.SQLITE_IOERR_SHMSIZE) {
		*err = &FullError{s.path, *err}
	}
}
