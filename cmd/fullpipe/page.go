package main

import (
	"errors"
	"io"
	"os"
	"path/filepath"
)

// writeWhole writes a file that others see whole or not at all.
func writeWhole(name string, write func(io.Writer) error) error {
	out, err := os.CreateTemp(filepath.Dir(name), ".fullpipe-*"+filepath.Ext(name))
	if err != nil {
		return err
	}
	defer os.Remove(out.Name()) // fails once it has its name
	if err := errors.Join(write(out), out.Chmod(0o644), out.Sync(), out.Close()); err != nil {
		return err
	}
	return os.Rename(out.Name(), name)
}
