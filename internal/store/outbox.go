package store

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/output"
)

// outbox is where results wait on this host until the server has stored them: a file each,
// in the order of their names. Clients' results have a quarter of it, and give their place to
// those of the history's owner.
type outbox struct {
	dir       string
	mostFiles int
	mostBytes int64
}

// clientShare is the part of a history's and of an outbox's bounds that clients' results may fill: 1/clientShare.
const clientShare = 4

func newOutbox(dir string) *outbox {
	return &outbox{dir: filepath.Join(dir, "outbox"), mostFiles: 10_000, mostBytes: 256 << 20}
}

const (
	outboxHead   = "fullpipe outbox 1 %d %d\n" // begins a file: the bytes of the document, and of the samples after it
	outboxSuffix = ".result"
	clientSuffix = ".client" // ends the name of a client's result: TIME-ID_CLIENT.client
	outboxBegun  = ".new-"   // begins the name of a file that is being written
)

// waiting is a file of the outbox.
type waiting struct {
	name   string
	bytes  int64
	client string // whose result it is, as file names have it; "" is the owner's
	put    time.Time
}

// waitingOf returns what a file's name says; ok is false where it is no result's.
func waitingOf(name string, bytes int64) (w waiting, ok bool) {
	w = waiting{name: name, bytes: bytes}
	rest, isClient := strings.CutSuffix(name, clientSuffix)
	if isClient {
		_, w.client, _ = strings.Cut(rest, "_")
	}
	digits, _, _ := strings.Cut(name, "-")
	if ns, err := strconv.ParseInt(digits, 10, 64); err == nil {
		w.put = time.Unix(0, ns)
	}
	return w, w.client != "" || strings.HasSuffix(name, outboxSuffix)
}

// makeRoom removes clients' results, the oldest first, until a result of so many bytes fits. A client's result that
// exceeds its daily quota is refused, as is one of the owner's that does not fit without clients' results.
func (o *outbox) makeRoom(files []waiting, client string, bytes int64, now time.Time, clientADay int) error {
	var clients []waiting // the oldest first
	var ownBytes, clientBytes int64
	ofDay := 0
	for _, f := range files {
		if f.client == "" {
			ownBytes += f.bytes
			continue
		}
		clients = append(clients, f)
		clientBytes += f.bytes
		if f.client == client && now.Sub(f.put) < 24*time.Hour {
			ofDay++
		}
	}
	own := len(files) - len(clients)
	maxClients := o.mostFiles - own - 1
	maxBytes := o.mostBytes - ownBytes - bytes // that may stay beside this result
	if client != "" {
		if ofDay >= clientADay {
			return ErrClientQuota
		}
		maxClients = min(maxClients, o.mostFiles/clientShare-1)
		maxBytes = min(maxBytes, o.mostBytes/clientShare-bytes)
	}
	if maxClients < 0 || maxBytes < 0 {
		return fmt.Errorf("%s is full: %d results wait there for the server, and no more than %d or %d MiB may", o.dir,
			len(files), o.mostFiles, o.mostBytes>>20)
	}
	for len(clients) > maxClients || clientBytes > maxBytes {
		os.Remove(filepath.Join(o.dir, clients[0].name))
		clientBytes = clientBytes - clients[0].bytes
		clients = clients[1:]
	}
	return nil
}

// put writes a result to the disk, in the place of what waits of the same one: a record that
// grows is there once. A client may have clientADay results there of the last 24 hours.
func (o *outbox) put(e *entry, doc, samples []byte, now time.Time, clientADay int) error {
	if err := os.MkdirAll(o.dir, 0o700); err != nil {
		return err
	}
	files, err := o.list()
	if err != nil {
		return err
	}
	client := strings.NewReplacer(":", "-", "/", "+").Replace(e.client) // as file names may have it
	head := fmt.Appendf(nil, outboxHead, len(doc), len(samples))
	if err := o.makeRoom(files, client, int64(len(head)+len(doc)+len(samples)), now, clientADay); err != nil {
		return err
	}
	ending := "-" + e.ID + outboxSuffix
	if client != "" {
		ending = "-" + e.ID + "_" + client + clientSuffix
	}
	f, err := os.CreateTemp(o.dir, outboxBegun+"*") // for its owner alone
	if err != nil {
		return err
	}
	for _, part := range [][]byte{head, doc, samples} {
		if err == nil {
			_, err = f.Write(part)
		}
	}
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = os.Rename(f.Name(), filepath.Join(o.dir, fmt.Sprintf("%019d%s", now.UnixNano(), ending)))
	}
	if err != nil {
		os.Remove(f.Name())
		return err
	}
	for _, f := range files {
		if strings.HasSuffix(f.name, ending) {
			os.Remove(filepath.Join(o.dir, f.name))
		}
	}
	_ = output.SyncDir(o.dir) // not every file system can
	return nil
}

// list returns the files that wait, in order, clients' last. What was left half
// written long ago, by a process that was killed, goes.
func (o *outbox) list() (files []waiting, err error) {
	entries, err := os.ReadDir(o.dir) // sorted
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var clients []waiting
	for _, file := range entries {
		info, err := file.Info()
		if err != nil || !info.Mode().IsRegular() {
			continue
		}
		one, ok := waitingOf(file.Name(), info.Size())
		switch {
		case ok && one.client != "":
			clients = append(clients, one)
		case ok:
			files = append(files, one)
		case strings.HasPrefix(file.Name(), outboxBegun) && time.Since(info.ModTime()) > time.Hour:
			os.Remove(filepath.Join(o.dir, file.Name()))
		}
	}
	return append(files, clients...), err
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
