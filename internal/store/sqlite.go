package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"modernc.org/sqlite" // pure Go
	sqlite3 "modernc.org/sqlite/lib"
)

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
	s, err := openFile(dir, path, fmt.Sprintf("_pragma=busy_timeout(%d)&_pragma=foreign_keys(1)&"+
		"_pragma=synchronous(NORMAL)&_txlock=immediate", wait.Milliseconds()))
	if err != nil {
		return nil, err
	}
	if err = s.begin(ctx, mode); err == nil {
		return s, nil
	}
	s.Close()
	if info, absent := os.Stat(path + "-wal"); readOnly(dir) && (absent != nil || info.Size() == 0) {
		// Without a journal what is in the file is all, and nobody changes it.
		if s, err = openFile(dir, path, "immutable=1"); err != nil {
			return nil, err
		}
		if err = s.upToDate(ctx); err == nil {
			return s, nil
		}
		s.Close()
	}
	if s.explain(&err); errors.As(err, new(*FullError)) {
		return nil, err
	}
	return nil, fmt.Errorf("the history in %s: %w", path, err)
}

func openFile(dir, name, options string) (*Store, error) {
	path := strings.NewReplacer("%", "%25", "?", "%3f", "#", "%23").Replace(name)
	db, err := sql.Open("sqlite", "file:"+path+"?"+options)
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	return &Store{db: db, dir: dir, path: name, dialect: dialect{usedBytes: usedPages}}, nil
}

// readOnly says whether a directory is on a disk that takes nothing.
func readOnly(dir string) bool {
	f, err := os.CreateTemp(dir, ".try-*")
	if err != nil {
		return errors.Is(err, syscall.EROFS)
	}
	f.Close()
	os.Remove(f.Name())
	return false
}

// upToDate refuses a history whose tables another version made.
func (s *Store) upToDate(ctx context.Context) error {
	version, err := versionOf(ctx, s.db)
	if err != nil {
		return err
	}
	texts, latest, err := pending(version)
	if err == nil && len(texts) > 0 {
		err = fmt.Errorf("it is of version %d, and its disk is read-only: a fullpipe that may write there brings it to %d",
			version, latest)
	}
	return err
}

// versionOf is which of the migrations a history has had.
func versionOf(ctx context.Context, db interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}) (version int, err error) {
	err = db.QueryRowContext(ctx, "PRAGMA user_version").Scan(&version)
	return version, err
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

// migrate brings the tables up to date, all or nothing. Where they are, it takes no lock: who reads does not wait
// for who writes.
func (s *Store) migrate(ctx context.Context) error {
	version, err := versionOf(ctx, s.db)
	if err != nil {
		return err
	}
	if texts, _, err := pending(version); err != nil || len(texts) == 0 {
		return err
	}
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if version, err = versionOf(ctx, tx); err != nil { // another process may have been faster
		return err
	}
	texts, latest, err := pending(version)
	if err != nil || len(texts) == 0 {
		return err
	}
	for i, text := range texts {
		if _, err := tx.ExecContext(ctx, text); err != nil {
			return fmt.Errorf("to version %d: %w", version+i+1, err)
		}
	}
	if _, err := tx.ExecContext(ctx, fmt.Sprintf("PRAGMA user_version = %d", latest)); err != nil {
		return err
	}
	return tx.Commit()
}

// usedPages is what a file's pages that hold something take.
func usedPages(ctx context.Context, tx *sql.Tx) (int64, error) {
	var pages, free, size int64
	for pragma, into := range map[string]*int64{"page_count": &pages, "freelist_count": &free, "page_size": &size} {
		if err := tx.QueryRowContext(ctx, "PRAGMA "+pragma).Scan(into); err != nil {
			return 0, err
		}
	}
	return (pages - free) * size, nil
}
