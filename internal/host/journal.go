package host

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// Record is one value that we changed, or are about to.
type Record struct {
	Kind Kind    `json:"kind"`
	Name string  `json:"name"`
	Old  *string `json:"old"` // before our first change: what undo restores
	Was  *string `json:"was"` // right before the last change: what a roll-back restores
	New  *string `json:"new"` // what we wrote last, or are about to write
	// Made says that New was written and read back. Until then the value is one of Was
	// and New.
	Made bool      `json:"made"`
	At   time.Time `json:"at"`
	Boot string    `json:"boot,omitempty"` // run-time values live no longer than this
}

// journal is the file of one scope: the host's, or one network namespace's.
type journal struct {
	Schema  string   `json:"schema"`
	Scope   string   `json:"scope"`
	Records []Record `json:"records"`

	path string
}

const (
	journalSchema = "fullpipe/journal/v1"
	journalLimit  = 8 << 20 // bytes; a journal is a few KiB
)

func (c Config) journalPath() string { return filepath.Join(c.StateDir, "journal-"+scope()+".json") }

// readJournal reads this scope's journal; one that is not there is empty. A journal that
// cannot be understood is an error: nothing may be written over it.
func (c Config) readJournal() (*journal, error) {
	path := c.journalPath()
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return &journal{Schema: journalSchema, Scope: scope(), path: path}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the journal: %w", err)
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, journalLimit+1))
	if err != nil {
		return nil, fmt.Errorf("read the journal: %w", err)
	}
	j, err := parseJournal(text)
	if err != nil {
		return nil, &JournalError{path, err}
	}
	j.path = path
	return j, nil
}

// JournalError says that the journal cannot be understood.
type JournalError struct {
	Path string
	Err  error
}

func (e *JournalError) Error() string { return fmt.Sprintf("journal %s: %v", e.Path, e.Err) }
func (e *JournalError) Unwrap() error { return e.Err }

// Try says what a person can do.
func (e *JournalError) Try() string {
	return "look at the file: it says which values were changed; put them back by hand, then move it away"
}

func parseJournal(text []byte) (*journal, error) {
	if len(text) > journalLimit {
		return nil, fmt.Errorf("longer than %d bytes", journalLimit)
	}
	j := &journal{}
	if err := json.Unmarshal(text, j); err != nil {
		return nil, err
	}
	if j.Schema != journalSchema {
		return nil, fmt.Errorf("schema %q, not %q", j.Schema, journalSchema)
	}
	seen := map[Change]bool{}
	for _, r := range j.Records {
		id := Change{Kind: r.Kind, Name: r.Name}
		if r.Name == "" || r.Kind == "" || seen[id] {
			return nil, fmt.Errorf("record %q of kind %q is empty or there twice", r.Name, r.Kind)
		}
		seen[id] = true
	}
	return j, nil
}

// save writes the journal so that after a crash there is the old or the new one, whole.
// An empty journal is no file.
func (j *journal) save() error {
	if len(j.Records) == 0 {
		return removeFile(j.path)
	}
	text, err := json.MarshalIndent(j, "", "  ")
	if err != nil {
		return err
	}
	if err := writeFile(j.path, append(text, '\n'), 0o644); err != nil {
		return fmt.Errorf("write the journal: %w", err)
	}
	return nil
}

func (j *journal) find(kind Kind, name string) *Record {
	for i := range j.Records {
		if j.Records[i].Kind == kind && j.Records[i].Name == name {
			return &j.Records[i]
		}
	}
	return nil
}

func (j *journal) drop(kind Kind, name string) {
	for i := range j.Records {
		if j.Records[i].Kind == kind && j.Records[i].Name == name {
			j.Records = append(j.Records[:i], j.Records[i+1:]...)
			return
		}
	}
}

// writeFile replaces a file: a temporary one beside it, fsync, rename, fsync of the
// directory. What a crash left of an earlier one goes.
func writeFile(path string, text []byte, mode os.FileMode) (err error) {
	clean(path)
	file, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			file.Close()
			os.Remove(file.Name())
		}
	}()
	if _, err = file.Write(text); err != nil {
		return err
	}
	if err = file.Chmod(mode); err != nil {
		return err
	}
	if err = file.Sync(); err != nil {
		return err
	}
	if err = file.Close(); err != nil {
		return err
	}
	if err = os.Rename(file.Name(), path); err != nil {
		return err
	}
	return syncDir(filepath.Dir(path))
}

// clean removes the temporary files that a crash left beside a file. The lock is held.
func clean(path string) {
	left, err := filepath.Glob(filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+".*"))
	if err != nil {
		return
	}
	for _, name := range left {
		os.Remove(name)
	}
}

func removeFile(path string) error {
	clean(path)
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return syncDir(filepath.Dir(path))
}

// fileStore holds whole files, as text.
type fileStore struct{}

const fileLimit = 1 << 20

func (fileStore) normal(value string) string { return value }

func (fileStore) read(name string) (*string, error) {
	file, err := os.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, fileLimit+1))
	if err != nil {
		return nil, err
	}
	if len(text) > fileLimit {
		return nil, fmt.Errorf("%s: longer than %d bytes", name, fileLimit)
	}
	value := string(text)
	return &value, nil
}

func (fileStore) write(name string, value *string) error {
	if value == nil {
		return removeFile(name)
	}
	mode := os.FileMode(0o644)
	if info, err := os.Stat(name); err == nil {
		mode = info.Mode().Perm()
	}
	return writeFile(name, []byte(*value), mode)
}
