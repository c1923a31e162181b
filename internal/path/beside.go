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
	// gentle is how often a stranger's port is connected to beside a transfer.
	gentle = 500 * time.Millisecond
	// idlePatience bounds the wait for an answer where nothing loads the path yet.
	idlePatience = time.Second
)

// Beside measures round trips to a host before a load and beside it, and answers with the
// load's error; the Latency is nil where nothing answers, and says in why.
func Beside(ctx context.Context, to netip.AddrPort, c Config, load func() error) (l *transfer.Latency, why string,
	err error) {
	c.Count = idleProbes
	c.Every = idleEvery
	c.Patience = idlePatience
	idle, asking := Ask(ctx, to, c)
	if asking != nil {
		return nil, "nothing there answers small packets beside the transfer: " + asking.Error(), load()
	}
	l = &transfer.Latency{Method: idle.Method, Idle: idle.Times}
	beside, stop := context.WithCancel(ctx)
	asked := make(chan RoundTrips, 1)
	c.Count = 1 << 30
	c.Every = loadedEvery
	c.Patience = 0
	if idle.Method == Connecting {
		c.Every = gentle
	}
	go func() {
		loaded, _ := Ask(beside, to, c) // ctx's end is how it ends
		asked <- loaded
	}()
	err = load()
	stop()
	loaded := <-asked
	l.Loaded = loaded.Times
	l.Lost = loaded.Lost
	return l, "", err
}
