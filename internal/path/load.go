package path

import (
	"context"
	"net/netip"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

const (
	idleProbes  = 10
	idleEvery   = 20 * time.Millisecond
	loadedEvery = 100 * time.Millisecond
	// gentle is the interval of connections to a port of an unknown server during a transfer.
	gentle = 500 * time.Millisecond
	// idleTimeout is the timeout of a probe on the idle path.
	idleTimeout = time.Second
)

// UnderLoad measures the RTT before and during a load and returns the load's error. If no probe gets a reply, the
// Latency is nil and why is the reason.
func UnderLoad(ctx context.Context, to netip.AddrPort, c Config, load func() error) (l *transfer.Latency, why string,
	err error) {
	c.Count = idleProbes
	c.Every = idleEvery
	c.Timeout = idleTimeout
	idle, asking := Ask(ctx, to, c)
	if asking != nil {
		return nil, "no reply to small packets before the transfer: " + asking.Error(), load()
	}
	l = &transfer.Latency{Method: idle.Method, Idle: idle.Times}
	loading, stop := context.WithCancel(ctx)
	asked := make(chan RoundTrips, 1)
	c.Count = 1 << 30
	c.Every = loadedEvery
	c.Timeout = 0
	if idle.Method == Connecting {
		c.Every = gentle
	}
	go func() {
		loaded, _ := Ask(loading, to, c) // ends with an error when the load is done
		asked <- loaded
	}()
	err = load()
	stop()
	loaded := <-asked
	l.Loaded = loaded.Times
	l.Lost = loaded.Lost
	return l, "", err
}
