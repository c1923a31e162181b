package sweep

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/atomicfile"
	"github.com/fullpipe-net/fullpipe/internal/record"
)

// Identity identifies a sweep: all runs of a journal have the same. The precision and the budget may change when the
// sweep continues.
type Identity struct {
	Schema string        `json:"schema"`
	Peer   string        `json:"peer"` // as the user named it
	Axes   Axes          `json:"axes"`
	Time   time.Duration `json:"time_ns"` // of one run
	Seed   uint64        `json:"seed"`
}

const (
	journalSchema = "fullpipe/sweep-journal/v1"
	journalLimit  = 64 << 20 // bytes; a run takes about 600
)

// Ends are the hosts of a sweep's runs, which must be the same in all of them. An end that cannot be seen is nil.
type Ends struct {
	Near *record.Host `json:"near,omitempty"`
	Far  *record.Host `json:"far,omitempty"`
}

// same returns an error that names the difference. The address of the near host may differ: some hosts get a new one
// every day.
func (e *Ends) same(now Ends) error {
	for _, host := range []struct {
		which     string
		then, now *record.Host
		moved     bool
	}{{"near", e.Near, now.Near, true}, {"far", e.Far, now.Far, false}} {
		if host.then == nil && host.now == nil || host.then != nil && host.now != nil &&
			host.then.Kernel == host.now.Kernel &&
			(host.moved || host.then.Address == host.now.Address) {
			continue
		}
		return fmt.Errorf("began with %s as the %s host, now it is %s", hostText(host.then), host.which,
			hostText(host.now))
	}
	return nil
}

func hostText(h *record.Host) string {
	if h == nil {
		return "a host that cannot be seen"
	}
	return strings.TrimSpace(h.Address + " " + h.Kernel)
}

// line is one line of the journal: the first has the identity, each of the others one of the other fields.
type line struct {
	Identity *Identity `json:"sweep,omitempty"`
	Ends     *Ends     `json:"ends,omitempty"`
	Run      *Trial    `json:"run,omitempty"`
}

// Journal keeps every run in a file as soon as it is measured: one JSON object a line,
// written and synced before the next run begins. A line that was cut off by a crash is
// dropped when the file is opened again.
type Journal struct {
	Identity Identity
	Ends     *Ends // nil: nothing was measured yet
	Runs     []Trial

	output *atomicfile.File
	file   *os.File // of output
	size   int64
}

// JournalError is the reason why a sweep cannot continue with a journal.
type JournalError struct {
	Path string
	Err  error
	Hint string
}

func (e *JournalError) Error() string { return fmt.Sprintf("%s: %v", e.Path, e.Err) }
func (e *JournalError) Unwrap() error { return e.Err }

// Try returns the remedy.
func (e *JournalError) Try() string { return e.Hint }

const another = "another file, or the command line that began this one"

// OpenJournal reads the journal of a sweep that continues, or begins one in an empty file. It returns a *JournalError
// with the difference for a journal of another sweep. On an error it closes the file, and removes it if it was new.
func OpenJournal(file *atomicfile.File, id Identity) (*Journal, error) {
	id.Schema = journalSchema
	j, err := openJournal(file.File(), id)
	if err != nil {
		file.Remove()
		file.Discard()
		return nil, err
	}
	j.output = file
	return j, nil
}

func openJournal(file *os.File, id Identity) (*Journal, error) {
	path := file.Name()
	text, err := io.ReadAll(io.LimitReader(file, journalLimit+1))
	if err != nil {
		return nil, &JournalError{path, err, another}
	}
	j, whole, err := parseJournal(text)
	if err != nil {
		return nil, &JournalError{path, err, "a sweep's own file; this one was left as it is"}
	}
	j.file = file
	j.size = int64(whole)
	if err := file.Truncate(j.size); err != nil {
		return nil, &JournalError{path, err, another}
	}
	if whole == 0 {
		j.Identity = id
		if err := j.append(line{Identity: &id}); err != nil {
			return nil, err
		}
		return j, atomicfile.SyncDir(filepath.Dir(path))
	}
	if err := j.Identity.same(id); err != nil {
		return nil, &JournalError{path, err, another}
	}
	return j, nil
}

// same returns an error that names the difference between two sweeps.
func (id Identity) same(now Identity) error {
	switch {
	case id.Peer != now.Peer:
		return fmt.Errorf("is a sweep with %s, not with %s", id.Peer, now.Peer)
	case !reflect.DeepEqual(id.Axes.Directions, now.Axes.Directions):
		return fmt.Errorf("is a sweep of directions %v, not %v", id.Axes.Directions, now.Axes.Directions)
	case !reflect.DeepEqual(id.Axes.Congestion, now.Axes.Congestion):
		return fmt.Errorf("is a sweep of congestion controls %q, not %q", id.Axes.Congestion, now.Axes.Congestion)
	case !reflect.DeepEqual(id.Axes, now.Axes):
		return fmt.Errorf("is a sweep of another grid: send buffers %v, receive buffers %v, writes %v", id.Axes.Send,
			id.Axes.Receive, id.Axes.Write)
	case id.Time != now.Time:
		return fmt.Errorf("is a sweep of runs of %v, not %v", id.Time, now.Time)
	case id.Seed != now.Seed:
		return fmt.Errorf("is a sweep of seed %d, not %d", id.Seed, now.Seed)
	}
	return nil
}

// parseJournal parses a journal and returns the length of its complete lines in bytes.
func parseJournal(text []byte) (*Journal, int, error) {
	if len(text) > journalLimit {
		return nil, 0, fmt.Errorf("longer than %d bytes", journalLimit)
	}
	j := &Journal{}
	at := 0
	cells := 0
	for number := 1; ; number++ {
		end := bytes.IndexByte(text[at:], '\n')
		if end < 0 {
			if number == 1 && at < len(text) && !bytes.HasPrefix([]byte(`{"sweep":`), text[:min(len(text), 9)]) {
				return nil, 0, fmt.Errorf("is no journal of a sweep")
			}
			return j, at, nil
		}
		var l line
		err := json.Unmarshal(text[at:at+end], &l)
		switch {
		case number == 1 && (err != nil || l.Identity == nil || l.Identity.Schema != journalSchema):
			return nil, 0, fmt.Errorf("is no journal of a sweep (%s)", journalSchema)
		case err != nil:
			return nil, 0, fmt.Errorf("line %d: %w", number, err)
		case number == 1:
			if err := l.Identity.Axes.Check(); err != nil {
				return nil, 0, fmt.Errorf("line 1: %w", err)
			}
			cells = len(l.Identity.Axes.Cells())
			j.Identity = *l.Identity
		case l.Run != nil:
			if err := l.Run.check(cells); err != nil {
				return nil, 0, fmt.Errorf("line %d: %w", number, err)
			}
			j.Runs = append(j.Runs, *l.Run)
		case l.Ends != nil:
			j.Ends = l.Ends
		default:
			return nil, 0, fmt.Errorf("line %d: neither a run nor who made it", number)
		}
		at += end + 1
	}
}

// Add appends one run and syncs the file.
func (j *Journal) Add(r Trial) error {
	if err := j.append(line{Run: &r}); err != nil {
		return err
	}
	j.Runs = append(j.Runs, r)
	return nil
}

// Meet stores the hosts of the first run. For later runs it returns an error if the hosts differ.
func (j *Journal) Meet(e Ends) error {
	if j.Ends != nil {
		if err := j.Ends.same(e); err != nil {
			return &JournalError{j.file.Name(), err, "another file"}
		}
		return nil
	}
	j.Ends = &e
	return j.append(line{Ends: &e})
}

func (j *Journal) append(l line) error {
	text, err := json.Marshal(l)
	if err != nil {
		return err
	}
	text = append(text, '\n')
	info, err := j.file.Stat()
	if err == nil && info.Size() != j.size {
		return &JournalError{j.file.Name(), errors.New("something else writes to it"),
			"one sweep at a time, or a file for each"}
	}
	if err == nil {
		_, err = j.file.WriteAt(text, j.size)
	}
	if err == nil {
		err = j.file.Sync()
	}
	if err != nil {
		return &JournalError{j.file.Name(), err, "room on the disk; the runs until now are complete"}
	}
	j.size += int64(len(text))
	return nil
}

// Close closes the file and keeps it.
func (j *Journal) Close() error { return j.output.Commit() }

// Remove closes the file and deletes it, unless it existed before this sweep.
func (j *Journal) Remove() error { return j.output.Remove() }
