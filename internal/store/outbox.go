package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// outbox is where results wait on this host until the server has stored them: a file each,
// in the order of their names.
type outbox struct {
	dir       string
	mostFiles int
	mostBytes int64
}

func newOutbox(dir string) *outbox {
	return &outbox{dir: filepath.Join(dir, "outbox"), mostFiles: 10_000, mostBytes: 256 << 20}
}

const (
	outboxHead   = "fullpipe outbox 1 %d %d\n" // begins a file: the bytes of the document, and of the samples after it
	outboxSuffix = ".result"
	outboxBegun  = ".new-" // begins the name of a file that is being written
)

// put writes a result to the disk, in the place of what waits of the same one: a record that
// grows is there once.
func (o *outbox) put(id string, doc, samples []byte) error {
	if err := os.MkdirAll(o.dir, 0o700); err != nil {
		return err
	}
	names, used, err := o.list()
	if err != nil {
		return err
	}
	if len(names) >= o.mostFiles || used+int64(len(doc)+len(samples)) > o.mostBytes {
		return fmt.Errorf("%s is full: %d results wait there for the server, and no more than %d or %d MiB may", o.dir,
			len(names), o.mostFiles, o.mostBytes>>20)
	}
	f, err := os.CreateTemp(o.dir, outboxBegun+"*") // for its owner alone
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(f, outboxHead, len(doc), len(samples))
	for _, part := range [][]byte{doc, samples} {
		if err == nil {
			_, err = f.Write(part)
		}
	}
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = os.Rename(f.Name(), filepath.Join(o.dir, fmt.Sprintf("%019d-%s%s", time.Now().UnixNano(), id, outboxSuffix)))
	}
	if err != nil {
		os.Remove(f.Name())
		return err
	}
	for _, name := range names {
		if strings.HasSuffix(name, "-"+id+outboxSuffix) {
			os.Remove(filepath.Join(o.dir, name))
		}
	}
	if d, err := os.Open(o.dir); err == nil { // where a directory can be synced, the name is on the disk too
		d.Sync()
		d.Close()
	}
	return nil
}

// list answers the files that wait, in order, and what they take. What was left half
// written long ago, by a process that was killed, goes.
func (o *outbox) list() (names []string, used int64, err error) {
	files, err := os.ReadDir(o.dir) // sorted
	if errors.Is(err, fs.ErrNotExist) {
		return nil, 0, nil
	}
	for _, file := range files {
		info, err := file.Info()
		if err != nil || !info.Mode().IsRegular() {
			continue
		}
		switch {
		case strings.HasSuffix(file.Name(), outboxSuffix):
			names = append(names, file.Name())
			used += info.Size()
		case strings.HasPrefix(file.Name(), outboxBegun) && time.Since(info.ModTime()) > time.Hour:
			os.Remove(filepath.Join(o.dir, file.Name()))
		}
	}
	return names, used, err
}

// get reads a file of put's.
func (o *outbox) get(name string) (doc, samples []byte, err error) {
	f, err := os.Open(filepath.Join(o.dir, name))
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, o.mostBytes+100))
	if err != nil {
		return nil, nil, err
	}
	head, body, _ := bytes.Cut(text, []byte("\n"))
	var n, more int
	if _, err := fmt.Sscanf(string(head)+"\n", outboxHead, &n, &more); err != nil || n < 0 || more < 0 ||
		n > len(body) || more != len(body)-n {
		return nil, nil, fmt.Errorf("%s: no result of this outbox", filepath.Join(o.dir, name))
	}
	return body[:n:n], body[n:], nil
}

// Waiting says that results wait on this host until the server stores them.
type Waiting struct {
	Results int
	Dir     string
	Err     error // why
}

func (e *Waiting) Error() string {
	return fmt.Sprintf("%v; results that wait in %s: %d", e.Err, e.Dir, e.Results)
}
func (e *Waiting) Unwrap() error { return e.Err }

// Keep adds a record that was measured here. Where a server keeps the history the record is
// first written to the outbox, and stays there until the server has stored it: then the
// error is a *Waiting.
func (s *Store) Keep(ctx context.Context, doc, samples []byte) error {
	left, unwritten := s.Leave(doc, samples)
	if left {
		return s.Deliver(ctx)
	}
	_, err := s.Add(ctx, doc, samples)
	if err != nil && unwritten != nil {
		return fmt.Errorf("%w; nor can it wait here: %w", err, unwritten)
	}
	return err
}

// Leave puts a record into the outbox, if there is one, for the next Deliver.
func (s *Store) Leave(doc, samples []byte) (left bool, err error) {
	if s.outbox == nil {
		return false, nil
	}
	e, err := read(doc)
	if err == nil {
		err = s.outbox.put(e.ID, doc, samples)
	}
	return err == nil, err
}

// Deliver stores what waits in the outbox, in its order. What the server does not take for
// what is in it stays, and holds nothing else up.
func (s *Store) Deliver(ctx context.Context) error {
	if s.outbox == nil {
		return nil
	}
	names, _, err := s.outbox.list()
	if err != nil {
		return err
	}
	var refused error
	for i, name := range names {
		doc, samples, err := s.outbox.get(name)
		if errors.Is(err, fs.ErrNotExist) { // another process was faster
			continue
		}
		if err == nil {
			_, err = read(doc)
		}
		if err == nil {
			err = s.addAgain(ctx, doc, samples)
			if err == nil || errors.Is(err, ErrGone) {
				os.Remove(filepath.Join(s.outbox.dir, name))
				continue
			}
			if ctx.Err() != nil {
				err = errors.New("the server has not stored all of it in the time there was")
			}
			if !ofTheRecord(err) {
				return &Waiting{len(names) - i, s.outbox.dir, err}
			}
		}
		refused = err
	}
	if refused == nil {
		return nil
	}
	names, _, _ = s.outbox.list()
	return &Waiting{len(names), s.outbox.dir, refused}
}

// addAgain adds a record, and once more where the connection was lost meanwhile: the server
// may have been restarted, and what it had stored is not stored twice.
func (s *Store) addAgain(ctx context.Context, doc, samples []byte) error {
	_, err := s.Add(ctx, doc, samples)
	var away *Unavailable
	if err != nil && !errors.As(err, &away) && !errors.Is(err, ErrGone) && !ofTheRecord(err) && ctx.Err() == nil {
		_, err = s.Add(ctx, doc, samples)
	}
	return err
}

// ofTheRecord says whether a record was refused for what is in it, and not for what the
// server can do at the moment: SQLSTATE classes 22 (data), 23 (constraints) and 54 (what fits
// nowhere).
func ofTheRecord(err error) bool {
	var said *pgconn.PgError
	return errors.As(err, &said) && slices.Contains([]string{"22", "23", "54"}, said.Code[:min(2, len(said.Code))])
}
