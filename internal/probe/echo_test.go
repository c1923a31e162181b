package probe_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/server"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

func TestTransfer_MeasuresLatencyByEcho(t *testing.T) {
	c := connect(t, serve(t, server.Config{Key: key}), key)
	for _, direction := range []transfer.Direction{transfer.Up, transfer.Down} {
		r, err := transfer.Run(context.Background(), c, transfer.Spec{Direction: direction, Time: 450 * time.Millisecond,
			Latency: true}, nil)
		if err != nil {
			t.Fatal(err)
		}
		l := r.Latency
		if l == nil || l.Method != transfer.EchoMethod || len(l.Idle) < 3 || len(l.Loaded) == 0 || l.Lost > 1 {
			t.Errorf("%s: %+v", direction, l)
		}
	}
	// Transfers that end before an echo's reply do not disturb the next one.
	for i := range 20 {
		if _, err := transfer.Run(context.Background(), c, transfer.Spec{Direction: transfer.Up, Bytes: 300_000,
			Latency: i%2 == 0}, nil); err != nil {
			t.Fatal(err)
		}
	}
}

// With servers that do not support echoes, latency is measured by ICMP or unknown.
func TestTransfer_MeasuresLatencyWithoutEcho(t *testing.T) {
	c := connect(t, serve(t, server.Config{Key: key}), key)
	c.ForgetEcho()
	r, err := transfer.Run(context.Background(), c, transfer.Spec{Direction: transfer.Down, Time: 300 * time.Millisecond,
		Latency: true}, nil)
	if err != nil {
		t.Fatal(err)
	}
	switch l := r.Latency; {
	case l == nil:
		if !strings.Contains(strings.Join(r.Warnings, " "), "small packets") {
			t.Errorf("nothing is said: %v", r.Warnings)
		}
	case !strings.HasPrefix(l.Method, "ICMP") || len(l.Idle) == 0 || len(l.Loaded) == 0:
		t.Errorf("%+v", l)
	}
}
