package store

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"

	"github.com/fullpipe-net/fullpipe/internal/record"
)

// pack compresses stored text, unpack expands it.
func pack(text []byte) []byte {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	w.Write(text) // a bytes.Buffer never fails
	w.Close()
	return out.Bytes()
}

func unpack(packed []byte) ([]byte, error) {
	r, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(r, record.MostBytes+1))
	if err == nil && len(text) > record.MostBytes {
		err = errors.New("record too large")
	}
	return text, err
}
