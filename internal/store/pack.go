package store

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"

	"github.com/fullpipe-net/fullpipe/internal/record"
)

// pack and unpack shorten what is stored.
func pack(text []byte) []byte {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	w.Write(text) // a buffer takes everything
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
		err = errors.New("a record too large to be one")
	}
	return text, err
}
