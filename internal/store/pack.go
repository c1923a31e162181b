package store

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"sync"

	"github.com/fullpipe-net/fullpipe/internal/record"
)

// pack compresses stored text, unpack expands it.
func pack(text []byte) []byte {
	var out bytes.Buffer
	w := writers.Get().(*gzip.Writer)
	defer writers.Put(w)
	w.Reset(&out)
	w.Write(text) // a bytes.Buffer never fails
	w.Close()
	return out.Bytes()
}

// writers are used again: each has 800 KB.
var writers = sync.Pool{New: func() any { return gzip.NewWriter(nil) }}

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
