// Package serverkey finds the keys that open a server: one of a flag or a file, or a file of keys by name.
package serverkey

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/spf13/pflag"

	"github.com/fullpipe-net/fullpipe/internal/cli/exit"
	"github.com/fullpipe-net/fullpipe/internal/cli/input"
	"github.com/fullpipe-net/fullpipe/internal/output"
	"github.com/fullpipe-net/fullpipe/internal/peer"
	"github.com/fullpipe-net/fullpipe/internal/probe"
)

// KeyFlags say where the key is that opens a server.
type KeyFlags struct {
	text, File    string
	ExposureNoted bool
}

// Add adds the flags.
func (k *KeyFlags) Add(fl *pflag.FlagSet) {
	fl.StringVar(&k.text, "key", "", "the server's key (others on this host can see it in the process list)")
	fl.StringVar(&k.File, "key-file", "", "a `file` that holds the server's key")
}

// longestKey is more than a key and the space around it.
const longestKey = 256

// Find answers nil when no key was given. It waits for a key that comes through a FIFO
// as long as ctx allows.
func (k *KeyFlags) Find(ctx context.Context) (*probe.Key, error) {
	argument := "--key"
	text := k.text
	switch {
	case k.text != "" && k.File != "":
		return nil, exit.Usage("--key and --key-file", "both say what the key is", "one of them")
	case k.File != "":
		argument = "--key-file"
		file, err := input.OpenFile(ctx, k.File)
		var bytes []byte
		if err == nil {
			bytes, err = input.ReadAll(file, k.File, longestKey)
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err != nil {
			return nil, exit.Usage(argument, exit.Plain(err), keyLine)
		}
		text = string(bytes)
	case k.text == "":
		argument = peer.KeyVariable
		text = os.Getenv(peer.KeyVariable)
		if text == "" {
			return nil, nil
		}
	}
	key, err := probe.ParseKey(text)
	if err != nil {
		return nil, exit.Usage(argument, exit.Plain(err), keyLine)
	}
	return &key, nil
}

// Exposed returns a note where every user of this host can open the key's file, else "".
func (k *KeyFlags) Exposed() string {
	info, err := os.Stat(k.File)
	if k.File == "" || err != nil || !openToOthers(info) {
		return ""
	}
	return fmt.Sprintf("every user of this host can open the key in %s (mode %04o): chmod 600 %[1]s", k.File,
		info.Mode().Perm())
}

const keyLine = "the line that fullpipe serve prints after \"key: \""

// Create makes a key in the file that was named where there is none, for its owner alone
// to read. It is seen whole or not at all, and one that is there stays as it is.
func (k *KeyFlags) Create(ctx context.Context) (made bool, err error) {
	if k.File == "" || k.text != "" {
		return false, nil
	}
	if _, err := os.Lstat(k.File); !errors.Is(err, os.ErrNotExist) {
		return false, nil // reading it says what is wrong with it
	}
	err = output.Update(ctx, k.File, func() ([]byte, error) {
		if _, err := os.Lstat(k.File); !errors.Is(err, os.ErrNotExist) {
			return nil, fs.ErrExist // a key came meanwhile
		}
		return []byte(probe.NewKey().String() + "\n"), nil
	})
	if errors.Is(err, fs.ErrExist) {
		return false, nil
	}
	if err != nil {
		return false, exit.Usage("--key-file", "make a key: "+exit.Plain(err), "a file in a directory that you may write to")
	}
	return true, nil
}
