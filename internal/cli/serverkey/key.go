// Package serverkey reads and creates server keys: a single key, or a file of named keys.
package serverkey

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/spf13/pflag"

	"github.com/fullpipe-net/fullpipe/internal/atomicfile"
	"github.com/fullpipe-net/fullpipe/internal/cli/exit"
	"github.com/fullpipe-net/fullpipe/internal/cli/input"
	"github.com/fullpipe-net/fullpipe/internal/probe"
	"github.com/fullpipe-net/fullpipe/internal/secret"
)

// KeyFlags are the flags of a server's key.
type KeyFlags struct {
	text, File    string
	ExposureNoted bool
}

// Add adds the flags.
func (k *KeyFlags) Add(fl *pflag.FlagSet) {
	fl.StringVar(&k.text, "key", "", "the server's key (others on this host can see it in the process list)")
	fl.StringVar(&k.File, "key-file", "", "a `file` with the server's key")
}

// maxKeyFile is the size limit of a key file, bytes.
const maxKeyFile = 256

// Find returns the key, nil if none was given. It waits for a key from a FIFO until ctx ends.
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
			bytes, err = input.ReadAll(file, k.File, maxKeyFile)
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err != nil {
			return nil, exit.Usage(argument, exit.Plain(err), keyLine)
		}
		text = string(bytes)
	case k.text == "":
		argument = secret.Key
		text = os.Getenv(secret.Key)
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

// Exposed returns a note if all users of this host can read the key's file, otherwise "".
func (k *KeyFlags) Exposed() string {
	info, err := os.Stat(k.File)
	if k.File == "" || err != nil || !openToOthers(info) {
		return ""
	}
	return fmt.Sprintf("every user of this host can open the key in %s (mode %04o): chmod 600 %[1]s", k.File,
		info.Mode().Perm())
}

const keyLine = "the line that fullpipe serve prints after \"key: \""

// Create creates the key file if it does not exist, readable by its owner only. It is created atomically and never
// replaced.
func (k *KeyFlags) Create(ctx context.Context) (made bool, err error) {
	if k.File == "" || k.text != "" {
		return false, nil
	}
	if _, err := os.Lstat(k.File); !errors.Is(err, os.ErrNotExist) {
		return false, nil // reading it returns the error
	}
	err = atomicfile.Update(ctx, k.File, func() ([]byte, error) {
		if _, err := os.Lstat(k.File); !errors.Is(err, os.ErrNotExist) {
			return nil, fs.ErrExist // created by another process meanwhile
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
