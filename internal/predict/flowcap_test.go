package predict

import (
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/link"
	"github.com/fullpipe-net/fullpipe/internal/testenv/must"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// TestFlowCap bounds each connection: n of them get n times the bound, until the line is
// the narrower, and then the bound says nothing.
func TestFlowCap(t *testing.T) {
	path := must.Get(link.Parse("rate=800mbit,rtt=24ms,queue=1bdp"))(t)
	for _, c := range []struct {
		connections int
		low, high   float64 // Mbit/s
		warned      bool
	}{{1, 170, 200, true}, {3, 510, 600, true}, {8, 650, 800, false}} {
		a := must.Get(Transfer(path, Setup{FlowCap: 200e6, Connections: c.connections}))(t)
		if got := a.Typical / 1e6; got < c.low || got > c.high || len(a.Warnings) > 0 != c.warned {
			t.Errorf("%d connections: %.0f Mbit/s, want %v to %v; %q", c.connections, got, c.low, c.high, a.Warnings)
		}
		if c.connections == 1 && a.Limiter != verdict.Bottleneck {
			t.Errorf("limiter %s", a.Limiter)
		}
	}
	narrow := must.Get(Transfer(path, Setup{FlowCap: 200e6, Window: 64 << 10}))(t)
	if narrow.Limiter != verdict.ReceiverWindow {
		t.Errorf("64 KiB at 24 ms: %s", narrow.Limiter)
	}
}
