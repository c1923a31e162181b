// Package path measures an idle path: the RTT by ICMP or TCP connect, the path MTU, and options that differ between
// the two ends' handshakes.
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

// Methods of RTT measurement.
const (
	DatagramICMP = "ICMP"        // an unprivileged echo socket (net.ipv4.ping_group_range)
	RawICMP      = "ICMP (raw)"  // needs CAP_NET_RAW
	Connecting   = "TCP connect" // a refused connection is an answer too
)

// RoundTrips are the answered probes of one idle path, in order of sending.
type RoundTrips struct {
	Method string
	Times  []time.Duration
	Lost   int // probes without an answer
}

// Least returns the min RTT, or 0.
func (r RoundTrips) Least() time.Duration {
	if len(r.Times) == 0 {
		return 0
	}
	return slices.Min(r.Times)
}

// Jitter returns the 95th percentile less the min RTT.
func (r RoundTrips) Jitter() time.Duration {
	if len(r.Times) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(r.Times))
	return sorted[int(math.Ceil(0.95*float64(len(sorted))))-1] - sorted[0]
}

// Config sets the probes. Its zero value sends twenty, 20 ms apart.
type Config struct {
	Count int
	Every time.Duration
	// Timeout is the timeout of a probe; 0 is 2 s.
	Timeout time.Duration
	// Route is the source route of the probes.
	Route socket.Route
	// OnlyICMP opens no TCP connections: some servers take one for a client.
	OnlyICMP bool
}

func (c Config) withDefaults() Config {
	c.Count = cmp.Or(c.Count, 20)
	c.Every = cmp.Or(c.Every, 20*time.Millisecond)
	c.Timeout = cmp.Or(c.Timeout, 2*time.Second)
	return c
}

// errSilent means that no answer arrived.
var errSilent = errors.New("no probe was answered")

// Ask measures the RTT to a host, by ICMP if permitted and answered, otherwise by TCP connects to the port.
func Ask(ctx context.Context, to netip.AddrPort, c Config) (RoundTrips, error) {
	c = c.withDefaults()
	e, err := openEcho(to.Addr(), c.Route)
	if err == nil {
		defer e.close()
		var r RoundTrips
		r, err = e.ask(ctx, c)
		if err == nil || ctx.Err() != nil {
			return r, err
		}
	}
	if c.OnlyICMP {
		return RoundTrips{}, fmt.Errorf("round trip to %v: %w", to.Addr(), err)
	}
	return connects(ctx, to, c)
}

// connects measures the time from SYN to SYN-ACK or RST.
func connects(ctx context.Context, to netip.AddrPort, c Config) (RoundTrips, error) {
	r := RoundTrips{Method: Connecting}
	for i := range c.Count {
		if i > 0 && !pause(ctx, c.Every) {
			break
		}
		dialing, cancel := context.WithTimeout(ctx, c.Timeout)
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

// Disagreements names the options that differ between the two ends' handshakes: a middlebox rewrites them.
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
