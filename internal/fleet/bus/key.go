package bus

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/nats-io/nkeys"

	"github.com/fullpipe-net/fullpipe/internal/atomicfile"
)

// StoredKey returns the key whose seed is in a file, and its public key. Without the file it writes one with a new key,
// readable by this user only; if create is nil, that is an error.
func StoredKey(path string, create func() (nkeys.KeyPair, error)) (key nkeys.KeyPair, public string, err error) {
	seed, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) && create != nil {
		seed, err = writeKey(path, create)
	}
	if err != nil {
		return nil, "", err
	}
	key, err = nkeys.FromSeed(bytes.TrimSpace(seed))
	if err != nil {
		return nil, "", fmt.Errorf("%s: %w", path, err)
	}
	public, err = key.PublicKey()
	return key, public, err
}

func writeKey(path string, create func() (nkeys.KeyPair, error)) (seed []byte, err error) {
	key, err := create()
	if err != nil {
		return nil, err
	}
	seed, err = key.Seed()
	if err != nil {
		return nil, err
	}
	return seed, atomicfile.WriteNew(path, append(seed, '\n'))
}
