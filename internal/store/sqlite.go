package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"modernc.org/sqlite" // pure Go
	sqlite3 "modernc.org/sqlite/lib"
)

// wait is the longest wait for another process's write lock.
const wait = 5 * time.Second

// Open opens the history in a directory. It makes the directory readable for its owner only. A power cut may lose the
// last records.
func Open(ctx context.Context, dir string) (*Store, error) { return openDir(ctx, dir, "NORMAL") }

func openDir(ctx context.Context, dir, synchronous string) (*Store, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("the history's directory: %w", err)
	}
	path := filepath.Join(dir, "history.db")
	if err := touch(path); err != nil {
		return nil, err
	}
	mode := "WAL"
	if remote(dir) { // SQLite's write-ahead log needs shared memory on a local file system
		mode = "DELETE"
	}
	s, err := openFile(dir, path, fmt.Sprintf("_pragma=busy_timeout(%d)&_pragma=foreign_keys(1)&"+
		"_pragma=synchronous(%s)&_txlock=immediate", wait.Milliseconds(), synchronous))
	if err != nil {
		return nil, err
	}
	err = s.begin(ctx, mode)
	if err == nil {
		return s, nil
	}
	s.Close()
	if info, absent := os.Stat(path + "-wal"); readOnly(dir) && (absent != nil || info.Size() == 0) {
		// Without a journal the file is complete, and no process changes it.
		s, err = openFile(dir, path, "immutable=1")
		if err != nil {
			return nil, err
		}
		err = s.upToDate(ctx)
		if err == nil {
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
	return &Store{db: db, dir: dir, path: name, dialect: dialect{usedBytes: usedPages,
		now: func() string { return strconv.FormatInt(time.Now().UnixNano(), 10) }, fleetLock: "SELECT 1"}}, nil
}

// readOnly reports whether a directory is on a read-only file system.
func readOnly(dir string) bool {
	f, err := os.CreateTemp(dir, ".try-*")
	if err != nil {
		return errors.Is(err, syscall.EROFS)
	}
	f.Close()
	os.Remove(f.Name())
	return false
}

// upToDate refuses a history with the tables of another version.
func (s *Store) upToDate(ctx context.Context) error {
	version, err := versionOf(ctx, s.db)
	if err != nil {
		return err
	}
	texts, latest, err := pending(version)
	if err == nil && len(texts) > 0 {
		err = fmt.Errorf("its tables have version %d and need version %d, but its disk is read-only",
			version, latest)
	}
	return err
}

// versionOf returns the number of migrations that a history has had.
func versionOf(ctx context.Context, db interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}) (version int, err error) {
	err = db.QueryRowContext(ctx, "PRAGMA user_version").Scan(&version)
	return version, err
}

// touch creates the file before SQLite does, readable only by its owner, and refuses anything but a regular file.
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
		return fmt.Errorf("the history: %s is not a regular file", path)
	}
	return nil
}

// begin sets the journal mode and brings the tables up to date. Several processes may race for the mode of a new
// file; the losers retry.
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

// migrate brings the tables up to date, all or nothing. Tables that are current need no lock, so readers do not
// wait for writers.
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
	version, err = versionOf(ctx, tx)
	if err != nil { // another process may have migrated it
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

// usedPages returns the bytes of the pages in use.
func usedPages(ctx context.Context, tx *sql.Tx) (int64, error) {
	var pages, free, size int64
	for pragma, into := range map[string]*int64{"page_count": &pages, "freelist_count": &free, "page_size": &size} {
		if err := tx.QueryRowContext(ctx, "PRAGMA "+pragma).Scan(into); err != nil {
			return 0, err
		}
	}
	return (pages - free) * size, nil
}
