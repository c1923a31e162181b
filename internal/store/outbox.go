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

// outbox is a directory of results that wait until the server stores them, one file each, sorted by name. Clients'
// results may fill a quarter of it and make room for the owner's.
type outbox struct {
	dir      string
	maxFiles int
	maxBytes int64
}

// clientShare limits clients' results to 1/clientShare of a history's and an outbox's limits.
const clientShare = 4

func newOutbox(dir string) *outbox {
	return &outbox{dir: filepath.Join(dir, "outbox"), maxFiles: 10_000, maxBytes: 256 << 20}
}

const (
	outboxHead   = "fullpipe outbox 1 %d %d\n" // file header: bytes of the document, bytes of the samples
	outboxSuffix = ".result"
	clientSuffix = ".client" // file name suffix of a client's result: TIME-ID_CLIENT.client
	outboxBegun  = ".new-"   // file name prefix of an unfinished file
)

// waiting describes a file of the outbox.
type waiting struct {
	name   string
	bytes  int64
	client string // client as in the file name; "" is the owner
	put    time.Time
}

// parseWaiting parses a file name. ok is false when the file is not a result.
func parseWaiting(name string, bytes int64) (w waiting, ok bool) {
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

// makeRoom removes the oldest clients' results until a result of the given size fits. It refuses a client's result
// above its daily quota, and an owner's result that does not fit even without clients' results.
func (o *outbox) makeRoom(files []waiting, client string, bytes int64, now time.Time, clientADay int) error {
	var clients []waiting // oldest first
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
	maxClients := o.maxFiles - own - 1
	maxBytes := o.maxBytes - ownBytes - bytes // limit of the clients' results after this one is added
	if client != "" {
		if ofDay >= clientADay {
			return ErrClientQuota
		}
		maxClients = min(maxClients, o.maxFiles/clientShare-1)
		maxBytes = min(maxBytes, o.maxBytes/clientShare-bytes)
	}
	if maxClients < 0 || maxBytes < 0 {
		return fmt.Errorf("%s is full: %d results wait for the server, the limit is %d results or %d MiB", o.dir,
			len(files), o.maxFiles, o.maxBytes>>20)
	}
	for len(clients) > maxClients || clientBytes > maxBytes {
		os.Remove(filepath.Join(o.dir, clients[0].name))
		clientBytes = clientBytes - clients[0].bytes
		clients = clients[1:]
	}
	return nil
}

// put writes a result to disk and replaces an earlier state of the same record. A client may have clientADay
// results of the last 24 hours.
func (o *outbox) put(e *entry, doc, samples []byte, now time.Time, clientADay int) error {
	if err := os.MkdirAll(o.dir, 0o700); err != nil {
		return err
	}
	files, err := o.list()
	if err != nil {
		return err
	}
	client := strings.NewReplacer(":", "-", "/", "+").Replace(e.client) // allowed in file names
	head := fmt.Appendf(nil, outboxHead, len(doc), len(samples))
	if err := o.makeRoom(files, client, int64(len(head)+len(doc)+len(samples)), now, clientADay); err != nil {
		return err
	}
	ending := "-" + e.ID + outboxSuffix
	if client != "" {
		ending = "-" + e.ID + "_" + client + clientSuffix
	}
	f, err := os.CreateTemp(o.dir, outboxBegun+"*") // readable only by its owner
	if err != nil {
		return err
	}
	for _, part := range [][]byte{head, doc, samples} {
		if err == nil {
			_, err = f.Write(part)
		}
	}
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
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
	_ = output.SyncDir(o.dir) // some file systems do not support it
	return nil
}

// list returns the waiting files in order, clients' last. It removes old unfinished files of killed processes.
func (o *outbox) list() (files []waiting, err error) {
	entries, err := os.ReadDir(o.dir) // sorted by name
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var clients []waiting
	for _, file := range entries {
		info, err := file.Info()
		if err != nil || !info.Mode().IsRegular() {
			continue
		}
		one, ok := parseWaiting(file.Name(), info.Size())
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

// get reads a file that put wrote.
func (o *outbox) get(name string) (doc, samples []byte, err error) {
	f, err := os.Open(filepath.Join(o.dir, name))
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, o.maxBytes+100))
	if err != nil {
		return nil, nil, err
	}
	head, body, _ := bytes.Cut(text, []byte("\n"))
	var n, more int
	if _, err := fmt.Sscanf(string(head)+"\n", outboxHead, &n, &more); err != nil || n < 0 || more < 0 ||
		n > len(body) || more != len(body)-n {
		return nil, nil, fmt.Errorf("%s: not a result of this outbox", filepath.Join(o.dir, name))
	}
	return body[:n:n], body[n:], nil
}
