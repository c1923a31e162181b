package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/fullpipe-net/fullpipe/internal/output"
	"github.com/fullpipe-net/fullpipe/internal/peer"
	"github.com/fullpipe-net/fullpipe/internal/probe"
)

// keyFlags say where the key is that opens a server.
type keyFlags struct {
	text, file    string
	exposureNoted bool
}

func (k *keyFlags) add(fl *pflag.FlagSet) {
	fl.StringVar(&k.text, "key", "", "the server's key (others on this host can see it in the process list)")
	fl.StringVar(&k.file, "key-file", "", "a `file` that holds the server's key")
}

// longestKey is more than a key and the space around it.
const longestKey = 256

// find answers nil when no key was given. It waits for a key that comes through a FIFO
// as long as ctx allows.
func (k *keyFlags) find(ctx context.Context) (*probe.Key, error) {
	argument := "--key"
	text := k.text
	switch {
	case k.text != "" && k.file != "":
		return nil, &usageError{"--key and --key-file", "both say what the key is", "one of them"}
	case k.file != "":
		argument = "--key-file"
		file, err := openFile(ctx, k.file)
		var bytes []byte
		if err == nil {
			bytes, err = readAll(file, k.file, longestKey)
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err != nil {
			return nil, &usageError{argument, plain(err), keyLine}
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
		return nil, &usageError{argument, plain(err), keyLine}
	}
	return &key, nil
}

// exposed returns a note where every user of this host can open the key's file, else "".
func (k *keyFlags) exposed() string {
	info, err := os.Stat(k.file)
	if k.file == "" || err != nil || !openToOthers(info) {
		return ""
	}
	return fmt.Sprintf("every user of this host can open the key in %s (mode %04o): chmod 600 %[1]s", k.file,
		info.Mode().Perm())
}

const keyLine = "the line that fullpipe serve prints after \"key: \""

// awaitFar is how long a far end that a lab started together with us may take to listen.
const awaitFar = 3 * time.Second

// awaits gives the far end of a lab time to listen; nobody else is waited for.
func awaits(text string) time.Duration {
	for _, name := range []string{"FULLPIPE_FAR", "FULLPIPE_FAR_OUTSIDE"} {
		if far := os.Getenv(name); far != "" && strings.Contains(text, far) {
			return awaitFar
		}
	}
	return 0
}

// create makes a key in the file that was named where there is none, for its owner alone
// to read. It is seen whole or not at all, and one that is there stays as it is.
func (k *keyFlags) create(ctx context.Context) (made bool, err error) {
	if k.file == "" || k.text != "" {
		return false, nil
	}
	if _, err := os.Lstat(k.file); !errors.Is(err, os.ErrNotExist) {
		return false, nil // reading it says what is wrong with it
	}
	err = output.Update(ctx, k.file, func() ([]byte, error) {
		if _, err := os.Lstat(k.file); !errors.Is(err, os.ErrNotExist) {
			return nil, fs.ErrExist // a key came meanwhile
		}
		return []byte(probe.NewKey().String() + "\n"), nil
	})
	if errors.Is(err, fs.ErrExist) {
		return false, nil
	}
	if err != nil {
		return false, &usageError{"--key-file", "make a key: " + plain(err), "a file in a directory that you may write to"}
	}
	return true, nil
}
