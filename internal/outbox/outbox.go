// Package outbox keeps results on this host's disk until a server or a hub has stored them.
package outbox

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

	"github.com/fullpipe-net/fullpipe/internal/atomicfile"
)

// Box is a directory of waiting results, one file each, sorted by name. Clients' results may fill a quarter of it and
// make room for the owner's.
type Box struct {
	Dir      string
	MaxFiles int
	MaxBytes int64
}

// ClientShare limits clients' results to 1/ClientShare of a history's and an outbox's limits.
const ClientShare = 4

// ErrClientQuota reports that the client's quota of stored results is used up.
var ErrClientQuota = errors.New("this client's quota of stored results for 24 hours is used up")

// In returns the outbox of a state directory. Put creates its directory.
func In(dir string) *Box {
	return &Box{Dir: filepath.Join(dir, "outbox"), MaxFiles: 10_000, MaxBytes: 256 << 20}
}

const (
	header       = "fullpipe outbox 1 %d %d\n" // bytes of the document, bytes of the samples
	suffix       = ".result"
	clientSuffix = ".client" // file name suffix of a client's result: TIME-ID_CLIENT.client
	unfinished   = ".new-"   // file name prefix
)

// Item is a waiting result.
type Item struct {
	Name   string // of its file
	Bytes  int64
	Client string // client as in the file name; "" is the owner
	Put    time.Time
}

// ID returns the identifier that the result was put with.
func (i Item) ID() string {
	_, rest, _ := strings.Cut(i.Name, "-")
	rest, _, _ = strings.Cut(rest, "_")
	return strings.TrimSuffix(rest, suffix)
}

// parse parses a file name. ok is false when the file is not a result.
func parse(name string, bytes int64) (i Item, ok bool) {
	i = Item{Name: name, Bytes: bytes}
	rest, isClient := strings.CutSuffix(name, clientSuffix)
	if isClient {
		_, i.Client, _ = strings.Cut(rest, "_")
	}
	digits, _, _ := strings.Cut(name, "-")
	if ns, err := strconv.ParseInt(digits, 10, 64); err == nil {
		i.Put = time.Unix(0, ns)
	}
	return i, i.Client != "" || strings.HasSuffix(name, suffix)
}

// makeRoom removes the oldest clients' results until a result of the given size fits. It refuses a client's result
// above its daily quota, and an owner's result that does not fit even without clients' results.
func (o *Box) makeRoom(files []Item, client string, bytes int64, now time.Time, clientADay int) error {
	var clients []Item // oldest first
	var ownBytes, clientBytes int64
	ofDay := 0
	for _, f := range files {
		if f.Client == "" {
			ownBytes += f.Bytes
			continue
		}
		clients = append(clients, f)
		clientBytes += f.Bytes
		if f.Client == client && now.Sub(f.Put) < 24*time.Hour {
			ofDay++
		}
	}
	own := len(files) - len(clients)
	maxClients := o.MaxFiles - own - 1
	maxBytes := o.MaxBytes - ownBytes - bytes // limit of the clients' results after this one is added
	if client != "" {
		if ofDay >= clientADay {
			return ErrClientQuota
		}
		maxClients = min(maxClients, o.MaxFiles/ClientShare-1)
		maxBytes = min(maxBytes, o.MaxBytes/ClientShare-bytes)
	}
	if maxClients < 0 || maxBytes < 0 {
		return fmt.Errorf("%s is full: %d results wait, the limit is %d results or %d MiB", o.Dir,
			len(files), o.MaxFiles, o.MaxBytes>>20)
	}
	for len(clients) > maxClients || clientBytes > maxBytes {
		os.Remove(filepath.Join(o.Dir, clients[0].Name))
		clientBytes = clientBytes - clients[0].Bytes
		clients = clients[1:]
	}
	return nil
}

// Put writes a result to disk and replaces an earlier state of the same record. client is "" for the owner's; a client
// may have clientADay results of the last 24 hours. When Put returns nil, a power cut does not lose the result.
func (o *Box) Put(id, client string, doc, samples []byte, now time.Time, clientADay int) error {
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return err
	}
	files, err := o.List()
	if err != nil {
		return err
	}
	client = strings.NewReplacer(":", "-", "/", "+").Replace(client) // allowed in file names
	head := fmt.Appendf(nil, header, len(doc), len(samples))
	if err := o.makeRoom(files, client, int64(len(head)+len(doc)+len(samples)), now, clientADay); err != nil {
		return err
	}
	ending := "-" + id + suffix
	if client != "" {
		ending = "-" + id + "_" + client + clientSuffix
	}
	f, err := os.CreateTemp(o.Dir, unfinished+"*") // readable only by its owner
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
		err = os.Rename(f.Name(), filepath.Join(o.Dir, fmt.Sprintf("%019d%s", now.UnixNano(), ending)))
	}
	if err != nil {
		os.Remove(f.Name())
		return err
	}
	for _, f := range files {
		if strings.HasSuffix(f.Name, ending) {
			os.Remove(filepath.Join(o.Dir, f.Name))
		}
	}
	_ = atomicfile.SyncDir(o.Dir) // some file systems do not support it
	return nil
}

// List returns the waiting results in order, clients' last. It removes old unfinished files of killed processes.
func (o *Box) List() (files []Item, err error) {
	entries, err := os.ReadDir(o.Dir) // sorted by name
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var clients []Item
	for _, file := range entries {
		info, err := file.Info()
		if err != nil || !info.Mode().IsRegular() {
			continue
		}
		one, ok := parse(file.Name(), info.Size())
		switch {
		case ok && one.Client != "":
			clients = append(clients, one)
		case ok:
			files = append(files, one)
		case strings.HasPrefix(file.Name(), unfinished) && time.Since(info.ModTime()) > time.Hour:
			os.Remove(filepath.Join(o.Dir, file.Name()))
		}
	}
	return append(files, clients...), err
}

// Get reads a result. The error is fs.ErrNotExist when another process has removed it.
func (o *Box) Get(name string) (doc, samples []byte, err error) {
	f, err := os.Open(filepath.Join(o.Dir, name))
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, o.MaxBytes+100))
	if err != nil {
		return nil, nil, err
	}
	head, body, _ := bytes.Cut(text, []byte("\n"))
	var n, more int
	if _, err := fmt.Sscanf(string(head)+"\n", header, &n, &more); err != nil || n < 0 || more < 0 ||
		n > len(body) || more != len(body)-n {
		return nil, nil, fmt.Errorf("%s: not a result of this outbox", filepath.Join(o.Dir, name))
	}
	return body[:n:n], body[n:], nil
}

// Remove removes a result that is stored.
func (o *Box) Remove(name string) error { return os.Remove(filepath.Join(o.Dir, name)) }

// Try returns an error when a result of a size cannot be put now.
func (o *Box) Try(bytes int) error {
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(o.Dir, unfinished+"*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = f.Write(make([]byte, bytes))
	return errors.Join(err, f.Close())
}
