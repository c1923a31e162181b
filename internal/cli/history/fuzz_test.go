package history

import (
	"bytes"
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/record"
)

// FuzzEachDocument checks that every document accepted from an imported file can be decoded.
func FuzzEachDocument(f *testing.F) {
	f.Add([]byte(`{"schema":"fullpipe/measure/v1","started_at":"2026-03-01T12:00:00Z","peer":"b","directions":[],` +
		`"samples":{"series":[]}}` + "\n{}"))
	f.Add([]byte("[1]"))
	f.Fuzz(func(t *testing.T, text []byte) {
		_ = eachDocument(bytes.NewReader(text), func(doc, samples []byte) error { // neither panics nor hangs
			if _, err := record.Decode(doc, nil); err != nil {
				t.Errorf("an accepted document cannot be decoded: %v", err)
			}
			return nil
		}, func(error) error { return nil })
	})
}
