package iperf2

import (
	"fmt"
	"net/netip"
	"sync"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/admission"
)

// maxHostStreams is the number of connections that one host gets at least, if the server has them.
const maxHostStreams = 128

// hosts are the hosts that test at the same time. iperf 2 does not say which connections belong together, so all of a
// host are one test: it takes a slot, and the turn of an exclusive server, from its first connection to its last.
type hosts struct {
	maxStreams int
	turn       func(declared time.Duration, end func()) (release func(), ok bool)
	table      admission.Table
	joining    sync.Mutex // one connection joins at a time

	mu      sync.Mutex // guards the fields below
	streams int
	all     map[netip.Prefix]*host
}

// host is one host's test.
type host struct {
	entry   *admission.Entry
	endTurn func()
	ends    map[int]func(error) // of its connections, by number
	next    int
}

// end ends all connections of h.
func (h *hosts) end(one *host, cause error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, end := range one.ends {
		end(cause)
	}
}

// join adds a connection of a host, which end ends. leave removes it. The error is ErrBusy.
func (h *hosts) join(from netip.Prefix, declared time.Duration, end func(error)) (leave func(), err error) {
	h.joining.Lock()
	defer h.joining.Unlock()
	h.mu.Lock()
	defer h.mu.Unlock()
	one := h.all[from]
	if one == nil {
		h.mu.Unlock() // the slot may be another host's, which is ended
		one, err = h.begin(from, declared)
		h.mu.Lock()
		if err != nil {
			return nil, err
		}
	}
	half := max(h.maxStreams/2, min(h.maxStreams, maxHostStreams))
	if h.streams >= h.maxStreams || len(one.ends) >= half {
		if len(one.ends) == 0 {
			h.release(one)
		}
		return nil, fmt.Errorf("%w: %d connections, %d of its host", ErrBusy, h.streams, len(one.ends))
	}
	if h.all == nil {
		h.all = map[netip.Prefix]*host{}
	}
	h.all[from] = one
	n := one.next
	one.next++
	one.ends[n] = end
	h.streams++
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(one.ends, n)
		h.streams--
		if len(one.ends) == 0 {
			h.release(one)
			delete(h.all, from)
		}
	}, nil
}

// begin takes a slot and the turn for a host.
func (h *hosts) begin(from netip.Prefix, declared time.Duration) (*host, error) {
	one := &host{endTurn: func() {}, ends: map[int]func(error){}}
	one.entry = &admission.Entry{Host: from, Evict: func() { h.end(one, errEvicted) }}
	if err := h.table.Admit(one.entry, time.Now()); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrBusy, err)
	}
	if h.turn == nil {
		return one, nil
	}
	release, ok := h.turn(declared, func() { go h.end(one, errTurnOver) })
	if !ok {
		h.table.Release(one.entry)
		return nil, fmt.Errorf("%w: another test runs", ErrBusy)
	}
	one.endTurn = release
	return one, nil
}

// release frees a host's slot and turn.
func (h *hosts) release(one *host) {
	h.table.Release(one.entry)
	one.endTurn()
}
