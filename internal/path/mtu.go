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
		headers, least = 40+8, leastMTU6
	}
	patience := c.Patience
	passes := func(bytes int) (fits, leaves bool) {
		for range probesEach {
			took, err := e.probe(ctx, bytes-headers, patience)
			if err != nil {
				return false, ctx.Err() != nil // larger than the first link's MTU
			}
			if took > 0 {
				// Answers take about as long as this one, whatever their size.
				patience = min(c.Patience, max(4*took, 50*time.Millisecond))
				return true, true
			}
		}
		return false, true
	}
	if ok, _ := passes(least); !ok {
		if err := ctx.Err(); err != nil {
			return MTU{}, err
		}
		return MTU{}, fmt.Errorf("path MTU to %v: %w", to, errSilent)
	}
	found := MTU{Bytes: least}
	// What can leave at all needs no waiting to find out.
	low, high := least, mostMTU
	for low < high {
		middle := (low + high + 1) / 2
		if _, err := e.probe(ctx, middle-headers, 0); err != nil && ctx.Err() == nil {
			high = middle - 1
		} else {
			low = middle
		}
	}
	found.Largest = low
	low, high = least, found.Largest
	for middle := high; low < high && ctx.Err() == nil; middle = (low + high + 1) / 2 { // the first link's own first
		if fits, _ := passes(middle); fits {
			low = middle
		} else {
			high = middle - 1
		}
	}
	found.Bytes = low
	return found, ctx.Err()
}
