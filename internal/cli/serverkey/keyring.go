package serverkey

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"sync"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/cli/exit"
	"github.com/fullpipe-net/fullpipe/internal/cli/input"
	"github.com/fullpipe-net/fullpipe/internal/config"
	"github.com/fullpipe-net/fullpipe/internal/probe"
)

// ErrNoFile says that --keys names no file.
var ErrNoFile = exit.Usage("--keys", "no file is named", "--keys keys.toml")

// ReadKeys reads a file of keys. It must be a regular file that other users cannot read.
func ReadKeys(ctx context.Context, name string) (*config.Keys, error) {
	if name == "" {
		return nil, ErrNoFile
	}
	file, err := input.OpenRegular(ctx, name, func(info fs.FileInfo) error {
		if openToOthers(info) {
			return exit.Usage(name, fmt.Sprintf("every user of this host can open it (mode %04o)", info.Mode().Perm()),
				"chmod 600 "+name)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	text, err := input.ReadAll(file, name, config.Most)
	if err != nil {
		return nil, err
	}
	k, err := config.ParseKeys(text)
	if err != nil {
		return nil, exit.Usage(name, exit.Plain(err), "docs/configuration.md")
	}
	return k, nil
}

// openToOthers reports whether every user of this host may read or write a file. A group may: it can be
// one made for this. Windows has access lists instead, which are not read.
func openToOthers(info fs.FileInfo) bool {
	return runtime.GOOS != "windows" && info.Mode().IsRegular() && info.Mode().Perm()&0o006 != 0
}

// Holders decodes the keys of a file. Two holders of the same key are an error.
func Holders(k *config.Keys) ([]probe.Holder, error) {
	var all []probe.Holder
	of := map[probe.Key]string{}
	for _, name := range k.Names() {
		h := k.Key[name]
		key, err := probe.ParseKey(h.Secret)
		if err != nil {
			return nil, fmt.Errorf("key.%s: %w", name, err)
		}
		if other := of[key]; other != "" {
			return nil, fmt.Errorf("key.%s has the secret of key.%s: they could not be told apart", name, other)
		}
		of[key] = name
		b, err := h.Bounds()
		if err != nil {
			return nil, fmt.Errorf("key.%s: %w", name, err)
		}
		all = append(all, probe.Holder{Name: name, Key: key, From: b.From, Until: h.Until, Time: b.Time,
			Bytes: int64(b.Bytes), Bps: float64(b.Rate)})
	}
	return all, nil
}

// keyring is a file of keys that is read again when it has changed. While the file cannot be
// read, the keys that were read last stay valid until their own end, and keys that it had dropped
// stay dropped. Each reason is logged once.
type keyring struct {
	ctx  context.Context
	name string
	note func(string)

	mu      sync.Mutex  // guards what follows
	tried   fs.FileInfo // the file when it was read last; nil: there was none
	triedAt time.Time
	err     error // of that
	noted   string
	holders []probe.Holder
}

const (
	// maxKeysWait bounds how long a client waits until the file is read again.
	maxKeysWait = time.Second
	// keysRetry is how long a file that could not be read, and has not changed, is left alone.
	keysRetry = time.Second
)

// NewKeyring reads a file of keys. Reasons why it cannot be read later go to note.
func NewKeyring(ctx context.Context, name string, note func(string)) (*keyring, error) {
	r := &keyring{ctx: ctx, name: name, note: note}
	return r, r.load(ctx)
}

func (r *keyring) load(ctx context.Context) error {
	info, err := os.Stat(r.name)
	if err != nil {
		r.tried = nil
		return exit.Usage("--keys", exit.Plain(err), "fullpipe key new NAME --keys "+r.name)
	}
	if r.unchanged(info) && (r.err == nil || time.Since(r.triedAt) < keysRetry) {
		return r.err
	}
	r.tried = info
	r.triedAt = time.Now()
	k, err := ReadKeys(ctx, r.name)
	if err == nil {
		all, wrong := Holders(k)
		if wrong == nil {
			r.holders = all
		} else {
			err = exit.Usage(r.name, exit.Plain(wrong), "docs/configuration.md")
		}
	}
	r.err = err
	return err
}

func (r *keyring) unchanged(info fs.FileInfo) bool {
	return r.tried != nil && os.SameFile(info, r.tried) && info.ModTime().Equal(r.tried.ModTime()) &&
		info.Size() == r.tried.Size() && info.Mode() == r.tried.Mode()
}

// Now returns the holders as the file has them.
func (r *keyring) Now() []probe.Holder {
	r.mu.Lock()
	defer r.mu.Unlock()
	ctx, cancel := context.WithTimeout(r.ctx, maxKeysWait)
	defer cancel()
	why := ""
	if err := r.load(ctx); err != nil {
		why = exit.Plain(err)
	}
	if why != "" && why != r.noted {
		r.note(fmt.Sprintf("note: %s; the keys stay as they were", why))
	}
	r.noted = why
	return r.holders
}
