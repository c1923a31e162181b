package main

import (
	"os"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/fullpipe-net/fullpipe/internal/peer"
	"github.com/fullpipe-net/fullpipe/internal/probe"
)

// keyFlags say where the key is that opens a server.
type keyFlags struct{ text, file string }

func (k *keyFlags) add(fl *pflag.FlagSet) {
	fl.StringVar(&k.text, "key", "", "the server's key (others on this host can see it in the process list)")
	fl.StringVar(&k.file, "key-file", "", "a file that holds the server's key")
}

// find answers nil when no key was given.
func (k *keyFlags) find() (*probe.Key, error) {
	key, err := peer.FindKey(k.text, k.file)
	if err != nil {
		argument, message, _ := strings.Cut(err.Error(), ": ")
		return nil, &usageError{argument, message, "the line that fullpipe serve prints after \"key: \""}
	}
	return key, nil
}

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
