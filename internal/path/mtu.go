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
	// Largest is the first link's MTU. Larger packets than Bytes are lost or reported as too big.
	Largest int
}

// Range of the probed IP packet sizes in bytes.
const (
	minMTU  = 576  // every IPv4 host takes it (RFC 791)
	minMTU6 = 1280 // RFC 8200 section 5
	maxMTU  = 65535
)

// maxProbes is the number of probes after which a size counts as too large: one loss is no limit (RFC 8899 section
// 5.1.2, MAX_PROBES).
const maxProbes = 3

// FindMTU finds the path MTU with ICMP echo requests that must not be fragmented. It ignores ICMP errors, so it also
// works on paths with an MTU black hole. It returns an error if the host does not answer echo requests.
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
	least := minMTU
	if e.six {
		headers = 40 + 8
		least = minMTU6
	}
	timeout := c.Timeout
	passes := func(bytes int) bool {
		start := time.Now()
		e.from = e.seq + 1 // a late answer to an earlier try is also valid
		for range maxProbes {
			took, err := e.probe(ctx, bytes-headers, timeout)
			if err != nil {
				return false
			}
			if took > 0 {
				// The RTT depends little on the size.
				timeout = min(c.Timeout, max(4*time.Since(start), 50*time.Millisecond))
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
	found := MTU{Largest: firstLink(least, func(bytes int) bool { // needs no replies
		_, err := e.probe(ctx, bytes-headers, 0)
		return err == nil || ctx.Err() != nil
	})}
	found.Bytes = largest(least, found.Largest, func(bytes int) bool { return ctx.Err() == nil && passes(bytes) })
	return found, ctx.Err()
}

// usualMTUs are common first-link MTUs, descending: loopback, jumbo frames, Ethernet, PPPoE (RFC 2516), WireGuard,
// the minimum of IPv6.
var usualMTUs = [...]int{maxMTU, 9216, 9001, 9000, 1500, 1492, 1420, 1400, 1280}

// firstLink returns the largest size that can leave this host. Each probe delays later ones, for seconds on a slow
// return path. It tries the usual sizes first, largest first, so that one packet is usually enough.
func firstLink(least int, leaves func(bytes int) bool) int {
	low := least
	high := maxMTU
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

// largest returns the largest size up to most that passes, and tries most first. It tests the next size once more
// at the end, because a loss burst is no limit.
func largest(least, most int, passes func(bytes int) bool) int {
	low := least
	high := most
	for range maxProbes {
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
