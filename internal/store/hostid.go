package store

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// HostID returns this host's random identifier in records. It creates the identifier at first use and stores it in
// dir.
func HostID(dir string) (string, error) {
	id, err := ReadHostID(dir)
	if !errors.Is(err, fs.ErrNotExist) {
		return id, err
	}
	var made [16]byte
	rand.Read(made[:])
	if err := makeOnce(dir, "host_id", hex.EncodeToString(made[:])); err != nil {
		return "", err
	}
	return ReadHostID(dir)
}

// ReadHostID returns the stored host identifier.
func ReadHostID(dir string) (string, error) {
	path := filepath.Join(dir, "host_id")
	text, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	if id := strings.TrimSpace(string(text)); len(id) == 32 && strings.Trim(id, "0123456789abcdef") == "" {
		return id, nil
	}
	return "", fmt.Errorf("%s: no valid host id; remove the file to get a new one", path)
}

// makeOnce writes a line to a file that only its owner may read. It links the complete file to its name, so the
// first of several processes wins.
func makeOnce(dir, name, line string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, "."+name+"-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = fmt.Fprintln(f, line)
	err = errors.Join(err, f.Sync(), f.Close())
	if err != nil {
		return err
	}
	path := filepath.Join(dir, name)
	if err := os.Link(f.Name(), path); err != nil && !errors.Is(err, fs.ErrExist) {
		return os.Rename(f.Name(), path) // a file system without hard links
	}
	return nil
}
