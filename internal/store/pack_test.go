package store

import (
	"bytes"
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/record"
)

// FuzzUnpack: damaged or hostile data gives an error or a record of limited size.
func FuzzUnpack(f *testing.F) {
	f.Add(pack([]byte(`{"schema":"fullpipe/measure/v1"}`)))
	f.Add([]byte{0x1f, 0x8b, 8})
	f.Fuzz(func(t *testing.T, packed []byte) {
		text, err := unpack(packed)
		if err != nil {
			return
		}
		if len(text) > record.MostBytes {
			t.Errorf("%d bytes", len(text))
		}
		if again, err := unpack(pack(text)); err != nil || !bytes.Equal(again, text) {
			t.Error("packed anew it is something else", err)
		}
	})
}
