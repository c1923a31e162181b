package host

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/fullpipe-net/fullpipe/internal/record"
)

// Record is one entry of the journal.
type Record = record.JournalEntry

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
	none := &journal{Schema: journalSchema, Scope: scope(), path: path}
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		return none, nil
	}
	for _, name := range []string{c.StateDir, path} {
		if err := trusted(name); err != nil {
			return nil, err
		}
	}
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return none, nil
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

// TrustError reports that others than this user and root may write the journal or its directory: undo would write their
// values.
type TrustError struct{ Path, Why string }

func (e *TrustError) Error() string { return fmt.Sprintf("state %s: %s", e.Path, e.Why) }

// Try returns the remedy.
func (e *TrustError) Try() string {
	return "check its content, then allow only root to write it (chown root, chmod go-w); FULLPIPE_STATE names another " +
		"directory"
}

// JournalError reports a journal that cannot be parsed.
type JournalError struct {
	Path string
	Err  error
}

func (e *JournalError) Error() string { return fmt.Sprintf("journal %s: %v", e.Path, e.Err) }
func (e *JournalError) Unwrap() error { return e.Err }

// Try returns the remedy.
func (e *JournalError) Try() string {
	return "read the file: it lists the changed values; restore them by hand, then move it away"
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
			return nil, fmt.Errorf("record %q of kind %q is empty or a duplicate", r.Name, r.Kind)
		}
		if r.Kind == File && r.Name != PersistFile {
			return nil, fmt.Errorf("record of the file %q: fullpipe changes no file but %s", r.Name, PersistFile)
		}
		seen[id] = true
	}
	return j, nil
}

// save writes the journal atomically: after a crash it is the complete old or new one. An empty journal is no file.
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
