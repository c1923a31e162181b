package store

import (
	"errors"
	"fmt"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// FullError is a change that did not fit on the disk of a history's file and was not made.
type FullError struct {
	Path string
	Err  error
}

func (e *FullError) Error() string {
	return fmt.Sprintf("the history in %s: its disk is full, nothing was changed", e.Path)
}

func (e *FullError) Unwrap() error { return e.Err }

// Try says what to do: SQLite first writes a removal, too, beside what it removes.
func (e *FullError) Try() string {
	return "free a few MiB on that disk and repeat the command; history forget needs that room too"
}

// explain makes a *FullError of SQLite's ways to say that a disk is full.
func (s *Store) explain(err *error) {
	var code *sqlite.Error
	if s.path != "" && errors.As(*err, &code) &&
		(code.Code()&0xff == sqlite3.SQLITE_FULL || code.Code() == sqlite3.SQLITE_IOERR_SHMSIZE) {
		*err = &FullError{s.path, *err}
	}
}
