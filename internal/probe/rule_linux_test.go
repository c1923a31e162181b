//go:build !portable

package probe_test

import (
	"context"
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/bulk"
	"github.com/fullpipe-net/fullpipe/internal/server"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// TestSender_UnacknowledgedBytes needs the unacknowledged bytes of a socket, which only Linux reports.
func TestSender_UnacknowledgedBytes(t *testing.T) {
	t.Setenv(bulk.RuleVariable, "afd:8192")
	c := connect(t, serve(t, server.Config{Key: key}), key)
	for _, tt := range []struct {
		send, write int
		rule        string
		most        int64
	}{
		{0, 0, "afd:8192", 8192},
		{0, 1000, "afd:8192", 8192},
		{0, 16384, "afd:8192", 8192 + 16384},
		{20000, 5000, "afd:20000", 20000},
	} {
		r, err := transfer.Run(context.Background(), c, transfer.Spec{Direction: transfer.Up, Bytes: 200_000,
			Near: transfer.Socket{SendBuffer: tt.send, NoDelay: true}, Program: transfer.Program{WriteBytes: tt.write}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if r.Near.BufferRule != tt.rule {
			t.Errorf("rule %q, want %q", r.Near.BufferRule, tt.rule)
		}
		for _, s := range r.Near.Streams[0].Samples {
			if s.Queued > tt.most+1 { // FIN counts as one byte
				t.Errorf("%s, writes of %d: %d bytes outstanding", tt.rule, tt.write, s.Queued)
				break
			}
		}
	}
}
