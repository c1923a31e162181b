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

// ErrNoFile reports that --keys names no file.
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

// openToOthers reports whether all users of this host may read or write a file. Group access is allowed. Windows
// access lists are not checked.
func openToOthers(info fs.FileInfo) bool {
	return runtime.GOOS != "windows" && info.Mode().IsRegular() && info.Mode().Perm()&0o006 != 0
}

// Holders decodes a file of keys. Two holders with the same key are an error.
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
			return nil, fmt.Errorf("key.%s has the secret of key.%s: they cannot be distinguished", name, other)
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

// keyring is a file of keys that is read again after a change. While the file is unreadable, the last keys stay
// valid until they expire, and removed keys stay removed. Each error is logged once.
type keyring struct {
	ctx  context.Context
	name string
	log  func(string)

	mu      sync.Mutex  // guards the fields below
	tried   fs.FileInfo // the file at the last read; nil: none
	triedAt time.Time   // time of the last read
	err     error       // of the last read
	logged  string      // last logged error; "" after a successful read
	holders []probe.Holder
}

const (
	// maxRereadWait limits a client's wait for a reread.
	maxRereadWait = time.Second
	// rereadInterval is the pause before an unreadable, unchanged file is read again.
	rereadInterval = time.Second
)

// NewKeyring reads a file of keys. log receives later read errors.
func NewKeyring(ctx context.Context, name string, log func(string)) (*keyring, error) {
	r := &keyring{ctx: ctx, name: name, log: log}
	return r, r.load(ctx)
}

func (r *keyring) load(ctx context.Context) error {
	info, err := os.Stat(r.name)
	if err != nil {
		r.tried = nil
		return exit.Usage("--keys", exit.Plain(err), "fullpipe key new NAME --keys "+r.name)
	}
	if r.unchanged(info) && (r.err == nil || time.Since(r.triedAt) < rereadInterval) {
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

// Now returns the current holders.
func (r *keyring) Now() []probe.Holder {
	r.mu.Lock()
	defer r.mu.Unlock()
	ctx, cancel := context.WithTimeout(r.ctx, maxRereadWait)
	defer cancel()
	why := ""
	if err := r.load(ctx); err != nil {
		why = exit.Plain(err)
	}
	if why != "" && why != r.logged {
		r.log(fmt.Sprintf("note: %s; the keys stay as they were", why))
	}
	r.logged = why
	return r.holders
}
