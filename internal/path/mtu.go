package path

import (
	"context"
	"fmt"
	"net/netip"
	"time"
)

// MTU is the largest IP packet that a path carries, in bytes.
type MTU struct {
	Bytes int
	// Largest is what the first link would carry; packets between Bytes and it vanish or
	// are reported too big on the way.
	Largest int
}

// Sizes in bytes of IP packets that are probed between.
const (
	leastMTU  = 576  // every IPv4 host takes it (RFC 791)
	leastMTU6 = 1280 // RFC 8200 section 5
	mostMTU   = 65535
)

// probesEach is how often a size is tried before it counts as too large: loss is not
// size (RFC 8899 section 5.1.2, MAX_PROBES).
const probesEach = 3

// FindMTU probes with echo requests that must not be fragmented. It needs ICMP and an
// answering host, and ignores what routers say of their MTU, so that it also finds the
// black holes in which TCP's own discovery hangs.
func FindMTU(ctx context.Context, to netip.Addr, c Config) (MTU, error) {
	c = c.withDefaults()
	e, err := openEcho(to, c.Route)
	if err != nil {
		return MTU{}, err
	}
	defer e.close()
	if err := dontFragment(e.conn, e.six); err != nil {
		return MTU{}, err
	}
	headers := 20 + 8 // IPv4 and ICMP
	least := leastMTU
	if e.six {
		headers = 40 + 8
		least = leastMTU6
	}
	patience := c.Patience
	passes := func(bytes int) bool {
		start := time.Now()
		e.from = e.seq + 1 // a late answer to an earlier try tells as much
		for range probesEach {
			took, err := e.probe(ctx, bytes-headers, patience)
			if err != nil {
				return false
			}
			if took > 0 {
				// Answers take about as long as this one, whatever their size.
				patience = min(c.Patience, max(4*time.Since(start), 50*time.Millisecond))
				return true
			}
		}
		return false
	}
	if !passes(least) {
		if err := ctx.Err(); err != nil {
			return MTU{}, err
		}
		return MTU{}, fmt.Errorf("path MTU to %v: %w", to, errSilent)
	}
	found := MTU{Largest: firstLink(least, func(bytes int) bool { // needs no waiting to find out
		_, err := e.probe(ctx, bytes-headers, 0)
		return err == nil || ctx.Err() != nil
	})}
	found.Bytes = largest(least, found.Largest, func(bytes int) bool { return ctx.Err() == nil && passes(bytes) })
	return found, ctx.Err()
}

// usualMTUs are those of first links, descending: loopback, jumbo frames, Ethernet, PPPoE
// (RFC 2516), WireGuard, and what IPv6 asks for.
var usualMTUs = [...]int{mostMTU, 9216, 9001, 9000, 1500, 1492, 1420, 1400, 1280}

// firstLink is the largest size that can leave this host. What leaves is under way and delays
// what is asked next, for seconds where the way back is slow: so the usual sizes are tried first,
// from the largest down, and most of the time one packet leaves.
func firstLink(least int, leaves func(bytes int) bool) int {
	low := least
	high := mostMTU
	for _, size := range usualMTUs {
		if size <= least {
			break
		}
		if leaves(size) {
			low = size
			break
		}
		high = size - 1
	}
	for middle := low + 1; low < high; middle = (low + high + 1) / 2 {
		if leaves(middle) {
			low = middle
			continue
		}
		high = middle - 1
		if middle == low+1 {
			break
		}
	}
	return low
}

// largest is the largest size up to most that passes, most itself tried first. The size above
// the answer is tried once more at the end: a burst of loss is no limit.
func largest(least, most int, passes func(bytes int) bool) int {
	low := least
	high := most
	for range probesEach {
		for middle := high; low < high; middle = (low + high + 1) / 2 {
			if passes(middle) {
				low = middle
			} else {
				high = middle - 1
			}
		}
		if low == most || !passes(low+1) {
			break
		}
		low = low + 1
		high = most
	}
	return low
}
