package bulk

import (
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// FuzzWriteSize checks that the program of every valid Spec has a write size.
func FuzzWriteSize(f *testing.F) {
	f.Add(0, 0.0, false)
	f.Add(1<<30, 1e14, true)
	f.Fuzz(func(t *testing.T, bytes int, bps float64, exchange bool) {
		if bytes < 0 || bytes > 1<<30 || bps != 0 && !(bps >= 1000 && bps < 1e15) {
			return
		}
		l := loop{program: transfer.Program{WriteBytes: bytes, WriteBps: bps, RequestResponse: exchange}}
		if n := l.writeSize(); n <= 0 || n > 1<<30 {
			t.Fatalf("writes of %d bytes", n)
		}
	})
}
