// Package path asks an idle path about itself: round trips by ICMP, or by connecting
// where ICMP is not to be had, the largest packet that gets through, and whether the
// two ends understood the handshake alike.
package path

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"net/netip"
	"slices"
	"syscall"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/socket"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// How round trips were measured.
const (
	DatagramICMP = "ICMP"        // an unprivileged echo socket (net.ipv4.ping_group_range)
	RawICMP      = "ICMP (raw)"  // needs CAP_NET_RAW
	Connecting   = "TCP connect" // a refused connection answers as well as an open port
)

// RoundTrips are the answered probes of one idle path, in the order of asking.
type RoundTrips struct {
	Method string
	Times  []time.Duration
	Lost   int // probes without an answer
}

// Least is the shortest round trip, 0 if there was none.
func (r RoundTrips) Least() time.Duration {
	if len(r.Times) == 0 {
		return 0
	}
	return slices.Min(r.Times)
}

// Jitter is how far the 95th percentile lies above the least.
func (r RoundTrips) Jitter() time.Duration {
	if len(r.Times) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(r.Times))
	return sorted[int(math.Ceil(0.95*float64(len(sorted))))-1] - sorted[0]
}

// Config says what to ask. Its zero value asks twenty times, 20 ms apart.
type Config struct {
	Count int
	Every time.Duration
	// Patience is how long an answer is waited for; 0 is 2 s.
	Patience time.Duration
	// Route is the way that probes leave by.
	Route socket.Route
	// OnlyICMP leaves a host's ports alone: some programs take a connection for a client.
	OnlyICMP bool
}

func (c Config) withDefaults() Config {
	c.Count = cmp.Or(c.Count, 20)
	c.Every = cmp.Or(c.Every, 20*time.Millisecond)
	c.Patience = cmp.Or(c.Patience, 2*time.Second)
	return c
}

// errSilent says that nothing came back at all.
var errSilent = errors.New("no probe was answered")

// Ask measures round trips to a host, by ICMP if the system lets us and the path answers,
// else by connecting to the port.
func Ask(ctx context.Context, to netip.AddrPort, c Config) (RoundTrips, error) {
	c = c.withDefaults()
	e, err := openEcho(to.Addr(), c.Route)
	if err == nil {
		defer e.close()
		var r RoundTrips
		if r, err = e.ask(ctx, c); err == nil || ctx.Err() != nil {
			return r, err
		}
	}
	if c.OnlyICMP {
		return RoundTrips{}, fmt.Errorf("round trip to %v: %w", to.Addr(), err)
	}
	return connects(ctx, to, c)
}

// connects takes the time from SYN to its answer, accepted or refused.
func connects(ctx context.Context, to netip.AddrPort, c Config) (RoundTrips, error) {
	r := RoundTrips{Method: Connecting}
	for i := range c.Count {
		if i > 0 && !pause(ctx, c.Every) {
			break
		}
		dialing, cancel := context.WithTimeout(ctx, c.Patience)
		start := time.Now()
		conn, err := socket.Dial(dialing, to.String(), socket.Options{Route: c.Route})
		took := time.Since(start)
		cancel()
		switch {
		case err == nil:
			conn.Close()
			r.Times = append(r.Times, took)
		case errors.Is(err, syscall.ECONNREFUSED):
			r.Times = append(r.Times, took)
		default:
			r.Lost++
		}
		if r.Lost == 3 && len(r.Times) == 0 {
			break // nobody is there
		}
	}
	if err := ctx.Err(); err != nil {
		return r, err
	}
	if len(r.Times) == 0 {
		return r, fmt.Errorf("round trip to %v: %w", to, errSilent)
	}
	return r, nil
}

func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// Disagreements names what the two ends of one connection understood differently of its
// handshake: something on the way rewrites it.
func Disagreements(near, far *transfer.Handshake) []string {
	if near == nil || far == nil {
		return nil
	}
	var differ []string
	if near.SendScale != far.ReceiveScale || near.ReceiveScale != far.SendScale {
		differ = append(differ, "window scaling")
	}
	if near.SACK != far.SACK {
		differ = append(differ, "SACK")
	}
	if near.Timestamps != far.Timestamps {
		differ = append(differ, "timestamps")
	}
	return differ
}
