package ndt7

import (
	"errors"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/admission"
)

// subscriber is whose tests and connections are counted together: an IPv4 address or an IPv6 /64.
func subscriber(c *Conn) netip.Prefix { return admission.Host(c.remote().Addr()) }

// How fast one address may connect: so many at once, and then one each pace. Who is faster is
// served later.
const (
	burst = 200
	pace  = 50 * time.Millisecond
)

// refusal is how long a connection for which there is no place is kept before it is reset. A
// client that comes again at once would cost more than one that waits.
const refusal = 3 * time.Second

// mostGuests is of how many addresses it is kept how fast they connect.
const mostGuests = 4096

// Listener accepts connections whose account a Server can read. It holds so many at a time, and
// of one address so many. Who comes when it is full takes the place of the oldest connection
// without a test of the address that has most, where that has more than the newcomer would: no
// few addresses keep the others out.
type Listener struct {
	*net.TCPListener
	most, mostOfOne int

	mu      sync.Mutex // guards what follows
	all     int
	guests  map[netip.Prefix]*guest
	refused map[*net.TCPConn]*time.Timer // nil: the listener is closed
}

// guest is what one address has.
type guest struct {
	conns []*Conn   // the oldest first
	whole time.Time // when its burst is
}

// NewListener bounds a listener.
func NewListener(l *net.TCPListener, most, mostOfOne int) *Listener {
	return &Listener{TCPListener: l, most: most, mostOfOne: mostOfOne, guests: map[netip.Prefix]*guest{},
		refused: map[*net.TCPConn]*time.Timer{}}
}

// Accept answers *Conn.
func (l *Listener) Accept() (net.Conn, error) {
	for {
		tcp, err := l.AcceptTCP()
		if err != nil {
			if !errors.Is(err, net.ErrClosed) && l.reset() > 0 { // what is missing may be their descriptors
				continue
			}
			return nil, err
		}
		c := newConn(tcp)
		c.listener = l
		admitted, out := l.enter(c, time.Now())
		if out != nil {
			_ = out.Close()
		}
		if admitted {
			return c, nil
		}
		l.refuse(tcp)
	}
}

// Close resets who waits for its refusal; connections stay.
func (l *Listener) Close() error {
	l.mu.Lock()
	all := l.refused
	l.refused = nil
	l.mu.Unlock()
	end(all)
	return l.TCPListener.Close()
}

// enter gives a place, for which another connection may have to be closed.
func (l *Listener) enter(c *Conn, now time.Time) (admitted bool, out *Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	who := subscriber(c)
	g := l.guests[who]
	if g == nil {
		if len(l.guests) >= mostGuests {
			l.forget(now)
		}
		g = &guest{}
		l.guests[who] = g
	}
	if len(g.conns) >= l.mostOfOne {
		return false, nil
	}
	if l.all >= l.most {
		if out = l.oldest(len(g.conns)); out == nil {
			return false, nil
		}
		l.drop(out)
	}
	if g.whole.Before(now) {
		g.whole = now
	}
	g.whole = g.whole.Add(pace)
	if due := g.whole.Add(-burst * pace); due.After(now) {
		c.due = due
	}
	g.conns = append(g.conns, c)
	l.all++
	return true, out
}

// oldest finds who has to make room for one of an address that has so many places; nil: nobody.
// The lock is held.
func (l *Listener) oldest(of int) *Conn {
	crowd := &guest{}
	for _, g := range l.guests {
		if len(g.conns) > len(crowd.conns) {
			crowd = g
		}
	}
	if len(crowd.conns) <= of+1 {
		return nil
	}
	for _, c := range crowd.conns {
		if !c.tests() {
			return c
		}
	}
	return nil
}

// exit gives a connection's place back, unless another one has it already.
func (l *Listener) exit(c *Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.drop(c)
}

// drop takes a connection out. The lock is held.
func (l *Listener) drop(c *Conn) {
	g := l.guests[subscriber(c)]
	if g == nil {
		return
	}
	for i, one := range g.conns {
		if one == c {
			g.conns = append(g.conns[:i], g.conns[i+1:]...)
			l.all--
			return
		}
	}
}

// forget drops addresses that have no connection and a whole burst; where that makes no room,
// all that have no connection. The lock is held.
func (l *Listener) forget(now time.Time) {
	for _, whole := range []bool{true, false} {
		for who, g := range l.guests {
			if len(g.conns) == 0 && (!whole || !g.whole.After(now)) {
				delete(l.guests, who)
			}
		}
		if len(l.guests) < mostGuests {
			return
		}
	}
}

// refuse resets a connection, after a while where there is room for that.
func (l *Listener) refuse(tcp *net.TCPConn) {
	_ = tcp.SetLinger(0) // nothing is left to be sent
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.refused == nil || len(l.refused) >= 2*l.most {
		_ = tcp.Close()
		return
	}
	l.refused[tcp] = time.AfterFunc(refusal, func() {
		_ = tcp.Close()
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.refused, tcp)
	})
}

// reset ends all who wait for their refusal, and answers how many they were.
func (l *Listener) reset() int {
	l.mu.Lock()
	all := l.refused
	if all != nil {
		l.refused = map[*net.TCPConn]*time.Timer{}
	}
	l.mu.Unlock()
	end(all)
	return len(all)
}

func end(refused map[*net.TCPConn]*time.Timer) {
	for tcp, timer := range refused {
		timer.Stop()
		_ = tcp.Close()
	}
}
