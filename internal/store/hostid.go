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

// HostID is this host's name in records: random, made at the first use and kept in the
// directory. It says nothing of the host.
func HostID(dir string) (string, error) {
	id, err := ReadHostID(dir)
	if !errors.Is(err, fs.ErrNotExist) {
		return id, err
	}
	if err := makeHostID(dir, filepath.Join(dir, "host_id")); err != nil {
		return "", err
	}
	return ReadHostID(dir)
}

// ReadHostID is the host's name where there is one.
func ReadHostID(dir string) (string, error) {
	path := filepath.Join(dir, "host_id")
	text, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	if id := strings.TrimSpace(string(text)); len(id) == 32 && strings.Trim(id, "0123456789abcdef") == "" {
		return id, nil
	}
	return "", fmt.Errorf("%s: no host id; remove it, and a new one is made", path)
}

// makeHostID links the whole file to its name: of several processes the first wins.
func makeHostID(dir, path string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, ".host_id-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	var id [16]byte
	rand.Read(id[:])
	_, err = fmt.Fprintln(f, hex.EncodeToString(id[:]))
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Link(f.Name(), path); err != nil && !errors.Is(err, fs.ErrExist) {
		return os.Rename(f.Name(), path) // a file system without links
	}
	return nil
}
