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

// BusyError reports a change that was not made because another process wrote to the history file
// all the time.
type BusyError struct {
	Path string
	Err  error
}

func (e *BusyError) Error() string {
	return fmt.Sprintf("the history in %s: another process has been writing to it for %v, nothing changed", e.Path, wait)
}

func (e *BusyError) Unwrap() error { return e.Err }

// Try returns the advice.
func (e *BusyError) Try() string {
	return "repeat the command; if it fails again, find the process with: fuser -v " + e.Path
}

// explain turns SQLite's errors of a full disk and of a locked file into a *FullError and a
// *BusyError.
func (s *Store) explain(err *error) {
	var code *sqlite.Error
	if s.path == "" || !errors.As(*err, &code) {
		return
	}
	switch {
	case code.Code()&0xff == sqlite3.SQLITE_FULL, code.Code() == sqlite3.SQLITE_IOERR_SHMSIZE:
		*err = &FullError{s.path, *err}
	case busy(*err) && !errors.As(*err, new(*BusyError)):
		*err = &BusyError{s.path, *err}
	}
}
