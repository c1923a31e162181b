package socket

import (
	"net/netip"
	"slices"
	"sync"
)

// Places bounds how many connections are open: Max in total, and MaxPerHost of one host,
// where a host is an IPv4 address or an IPv6 /64 (Subscriber). A connection for which there
// is no place takes that of another one; which one, Enter says. The zero value of Max is no
// place at all, the zero value of MaxPerHost is no bound per host.
type Places[C comparable] struct {
	Max, MaxPerHost int

	mu    sync.Mutex // guards what follows
	hosts map[netip.Prefix][]place[C]
	open  int
	clock uint64 // counts uses
}

// place is one open connection. The places of a host are in the order of their last use,
// the least recently used one first.
type place[C comparable] struct {
	conn C
	used uint64
	hold Hold
}

// Hold says when a connection may lose its place to a newcomer.
type Hold int

const (
	// Idle connections lose their place first: nobody waits for an answer on them.
	Idle Hold = iota
	// Busy connections lose it only when their host has no idle one.
	Busy
	// Kept connections never lose it.
	Kept
)

// Enter gives a connection a place, as an idle one. When its host has MaxPerHost places, the
// host's least recently used connection is evicted. When all Max places are taken, it is that of
// the host with the most connections, the newcomer included, so that no few hosts keep the
// others out. The caller closes the evicted connection; the zero value is none. Enter returns
// false when every connection that would have to go is kept.
func (p *Places[C]) Enter(from netip.Addr, conn C) (evicted C, ok bool) {
	host := Subscriber(from)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.hosts == nil {
		p.hosts = map[netip.Prefix][]place[C]{}
	}
	switch {
	case p.MaxPerHost > 0 && len(p.hosts[host]) >= p.MaxPerHost:
		evicted, ok = p.evict(host)
	case p.open >= p.Max:
		evicted, ok = p.evict(p.busiest(host))
	default:
		ok = true
	}
	if ok {
		p.open++
		p.clock++
		p.hosts[host] = append(p.hosts[host], place[C]{conn: conn, used: p.clock})
	}
	return evicted, ok
}

// Use makes a connection the most recently used one of its host, and changes its hold.
// A connection that was evicted stays so.
func (p *Places[C]) Use(from netip.Addr, conn C, hold Hold) {
	host := Subscriber(from)
	p.mu.Lock()
	defer p.mu.Unlock()
	if i := p.find(host, conn); i >= 0 {
		p.clock++
		p.hosts[host] = append(slices.Delete(p.hosts[host], i, i+1), place[C]{conn, p.clock, hold})
	}
}

// Leave gives a connection's place back. A connection that was evicted has none.
func (p *Places[C]) Leave(from netip.Addr, conn C) {
	host := Subscriber(from)
	p.mu.Lock()
	defer p.mu.Unlock()
	if i := p.find(host, conn); i >= 0 {
		p.remove(host, i)
	}
}

// Open returns the number of connections that have a place.
func (p *Places[C]) Open() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.open
}

// busiest returns the host with the most connections of those that can give up one, the
// newcomer counted; of equal ones that whose connection was used least recently.
func (p *Places[C]) busiest(newcomer netip.Prefix) (busiest netip.Prefix) {
	maxOpen, leastUsed := 0, uint64(0)
	for host, places := range p.hosts {
		open := len(places)
		if host == newcomer {
			open++
		}
		i := next(places)
		if i >= 0 && (open > maxOpen || open == maxOpen && places[i].used < leastUsed) {
			busiest, maxOpen, leastUsed = host, open, places[i].used
		}
	}
	return busiest
}

// evict takes a host's place back, if it has one that can be taken.
func (p *Places[C]) evict(host netip.Prefix) (evicted C, ok bool) {
	i := next(p.hosts[host])
	if i < 0 {
		return evicted, false
	}
	evicted = p.hosts[host][i].conn
	p.remove(host, i)
	return evicted, true
}

// next returns the index of the connection that has to go first, -1 when all are kept.
func next[C comparable](places []place[C]) int {
	for hold := Idle; hold < Kept; hold++ {
		if i := slices.IndexFunc(places, func(one place[C]) bool { return one.hold == hold }); i >= 0 {
			return i
		}
	}
	return -1
}

func (p *Places[C]) find(host netip.Prefix, conn C) int {
	return slices.IndexFunc(p.hosts[host], func(one place[C]) bool { return one.conn == conn })
}

func (p *Places[C]) remove(host netip.Prefix, i int) {
	p.open--
	if p.hosts[host] = slices.Delete(p.hosts[host], i, i+1); len(p.hosts[host]) == 0 {
		delete(p.hosts, host)
	}
}
