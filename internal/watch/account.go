package watch

import (
	"cmp"
	"net/netip"
	"slices"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// Told is what a dump, a look-up or a socket's end says of one connection at one moment.
type Told struct {
	Cookie        uint64 // unlike ports, never used again before a restart
	Local, Remote netip.AddrPort
	UID, Inode    uint32
	Cgroup        uint64
	Congestion    string
	Sample        transfer.Sample // At is on the watcher's clock
	// Unread and Unacked are the socket's queues; SendQueued is what its send buffer is
	// charged with, of SendBuffer. ReceiveBuffer is 0 where the sizes were not told.
	Unread, Unacked, SendQueued, SendBuffer, ReceiveBuffer int64
	Reordered                                              uint32 // events of reordering; wraps
	Established                                            bool   // neither end has closed
}

// Connection is one connection as it has been followed.
type Connection struct {
	Told      // the last
	Seen      time.Duration
	Handshake *transfer.Handshake
	Owner     Owner
	// Ended says that it is over. Final says that the last account is the kernel's own at
	// the socket's end, so that its counters are complete; else the end was missed, and
	// they are those of the last reading.
	Ended, Final bool
	// Born says that the connection began after the watch: its counters are all its own.
	Born bool

	base    counters      // when it was first seen, 0 for one that was born since
	mark    counters      // when the period began
	missing int           // dumps in a row without it
	carried int64         // bytes of both directions when the fast tier was chosen last
	window  []Told        // of the fast tier, oldest first
	opened  time.Duration // when a program was first seen to have it open
	syn     int64         // of what was acknowledged, this is the SYN: 1 where this end began
}

// Sent is the payload in bytes that the peer has acknowledged since the watch began.
func (c *Connection) Sent() int64 { return max(c.sentSince(&c.base), 0) }

// Received is the payload in bytes that has arrived in order since the watch began. The
// peer's FIN counts as one on a connection on which payload came.
func (c *Connection) Received() int64 { return max(c.Sample.Received-c.base.Received, 0) }

// sentSince is the payload that was acknowledged since an earlier reading.
func (c *Connection) sentSince(then *counters) int64 {
	now := c.counters()
	return now.payloadSent(c.syn) - then.payloadSent(c.syn)
}

// learnSYN finds out whether bytes_acked counts a SYN: it does at the end that began. Where
// all that was written is acknowledged, it is the difference to what was sent.
func (c *Connection) learnSYN() {
	s := &c.Sample
	if c.Established && c.Unacked == 0 && s.Acked == s.Sent-s.RetransmittedBytes+1 {
		c.syn = 1
	}
}

// Totals are sums over all connections, those that are gone included. They never fall.
type Totals struct {
	Sent, Received, Retransmitted int64 // bytes
	Opened, Closed                int64 // connections seen to begin, and to end by the kernel's account
	Unfinished                    int64 // ended without one
}

// Account keeps every connection by its cookie. It is pure: what it is told, and when, is
// the caller's. It is not safe for use by several goroutines.
type Account struct {
	open    map[uint64]*Connection
	ended   []*Connection // in this period
	lighter int           // that ended and were let go since the last Period
	totals  Totals        // of connections that are gone
	first   bool          // the first dump is over: what comes new was born since
	names   *pseudonyms   // nil: addresses are shown
	// lost are connections that no dump had any more and whose end was not told yet: the
	// peer reset them, and their program has not closed.
	lost map[uint64]*Connection
}

// mostLost bounds the memory of those whose end may still come.
const mostLost = 4096

// mostEnded is how many connections that are over are kept for one Period, the heaviest.
const mostEnded = 4096

// NewAccount is an empty one.
func NewAccount() *Account {
	return &Account{open: map[uint64]*Connection{}, lost: map[uint64]*Connection{}}
}

// Knows says whether a connection is followed, or was until it vanished.
func (a *Account) Knows(cookie uint64) bool { return a.open[cookie] != nil || a.lost[cookie] != nil }

// Open is the connection of that cookie; nil where it is not followed.
func (a *Account) Open(cookie uint64) *Connection { return a.open[cookie] }

// Read takes a reading of a connection that stands.
func (a *Account) Read(t Told) *Connection {
	c := a.open[t.Cookie]
	switch gone := a.lost[t.Cookie]; {
	case gone != nil:
		a.reopen(gone)
		c = gone
	case c == nil:
		c = a.begin(t)
	}
	c.update(t)
	c.missing = 0
	return c
}

func (a *Account) begin(t Told) *Connection {
	c := &Connection{Told: t, Seen: t.Sample.At, Born: a.first}
	if !c.Born {
		c.base = t.counters()
	} else {
		a.totals.Opened++
	}
	c.mark = c.base
	c.mark.At, c.opened = t.Sample.At, t.Sample.At
	c.learnSYN()
	a.open[t.Cookie] = c
	return c
}

// update takes newer counters. A reading that is older than the last, as a look-up may be
// that was under way when the socket ended, changes nothing.
func (c *Connection) update(t Told) {
	if c.Ended || t.Sample.At < c.Sample.At {
		return
	}
	// The 32-bit counters wrap; a Sample's are kept whole.
	t.Sample.Retransmitted = c.Sample.Retransmitted + int64(uint32(t.Sample.Retransmitted)-uint32(c.Sample.Retransmitted))
	if t.Inode == 0 {
		t.Inode = c.Inode
	} else if c.Inode == 0 { // it was accepted
		c.opened = t.Sample.At
	}
	if t.Cgroup == 0 {
		t.Cgroup = c.Cgroup
	}
	if t.SendBuffer == 0 {
		t.SendBuffer, t.ReceiveBuffer, t.SendQueued = c.SendBuffer, c.ReceiveBuffer, c.SendQueued
	}
	if t.Congestion == "" {
		t.Congestion = c.Congestion
	}
	c.Told = t
	c.learnSYN()
}

// End takes the kernel's last account of a socket. One that no dump ever saw was born and
// ended between two of them: it is counted, and nobody knows whose it was.
func (a *Account) End(t Told) *Connection {
	if c := a.lost[t.Cookie]; c != nil {
		a.found(c, t)
		return nil
	}
	c := a.open[t.Cookie]
	if c == nil {
		if !a.first {
			return nil // it ended while the first dump ran: what it did before is not ours to count
		}
		c = a.begin(t)
	}
	if t.cleared(c) {
		a.totals.Unfinished++
		a.close(c)
		return c
	}
	c.update(t)
	c.Final = true
	a.close(c)
	a.totals.Closed++
	return c
}

// cleared says that a last account is none: a socket that its program reset has been
// emptied (tcp_disconnect, net/ipv4/tcp.c), and the last reading is all there is.
func (t *Told) cleared(c *Connection) bool {
	return t.Sample.Acked < c.Sample.Acked || t.Sample.Received < c.Sample.Received
}

// reopen takes back a connection that two dumps had missed. It stays counted as unfinished,
// since no sum falls.
func (a *Account) reopen(c *Connection) {
	delete(a.lost, c.Cookie)
	c.Ended = false
	a.open[c.Cookie] = c
	a.ended = slices.DeleteFunc(a.ended, func(e *Connection) bool { return e == c })
	a.totals.Sent -= c.Sent()
	a.totals.Received -= c.Received()
	a.totals.Retransmitted -= max(c.Sample.RetransmittedBytes-c.base.RetransmittedBytes, 0)
}

// found adds what a connection did between the last dump that had it and its end.
func (a *Account) found(c *Connection, t Told) {
	delete(a.lost, c.Cookie)
	if t.cleared(c) {
		return
	}
	sent, received, resent := c.Sent(), c.Received(), c.Sample.RetransmittedBytes
	c.Ended = false
	c.update(t)
	c.Ended, c.Final = true, true
	a.totals.Sent += max(c.Sent()-sent, 0)
	a.totals.Received += max(c.Received()-received, 0)
	a.totals.Retransmitted += max(c.Sample.RetransmittedBytes-resent, 0)
}

func (a *Account) close(c *Connection) {
	c.Ended = true
	delete(a.open, c.Cookie)
	if a.ended = append(a.ended, c); len(a.ended) >= 2*mostEnded {
		slices.SortFunc(a.ended, func(a, b *Connection) int {
			return cmp.Compare(b.Sent()+b.Received(), a.Sent()+a.Received())
		})
		a.lighter += len(a.ended) - mostEnded
		a.ended = slices.Clone(a.ended[:mostEnded])
	}
	a.totals.Sent += c.Sent()
	a.totals.Received += c.Received()
	a.totals.Retransmitted += max(c.Sample.RetransmittedBytes-c.base.RetransmittedBytes, 0)
}

// Dumped says that a dump has ended which began at the given time. A dump is not one
// moment and may miss a socket, so one is gone only when two did not have it; the message
// of its end was lost then.
func (a *Account) Dumped(began time.Duration) {
	a.first = true
	for _, c := range a.open {
		if c.Sample.At >= began {
			continue
		}
		if c.missing++; c.missing >= 2 {
			a.totals.Unfinished++
			a.close(c)
			if len(a.lost) < mostLost {
				c.window = nil
				a.lost[c.Cookie] = c
			}
		}
	}
}

// Period calls each with every connection that stood in the period or ended in it, and
// begins the next one.
func (a *Account) Period(each func(*Connection)) {
	for _, c := range a.open {
		each(c)
		c.mark = c.counters()
	}
	for _, c := range a.ended {
		each(c)
	}
	a.ended, a.lighter = nil, 0
}

// All calls each with every connection that stands or ended since the last Period.
func (a *Account) All(each func(*Connection)) {
	for _, c := range a.open {
		each(c)
	}
	for _, c := range a.ended {
		each(c)
	}
}

// Totals are the sums up to now.
func (a *Account) Totals() Totals {
	t := a.totals
	for _, c := range a.open {
		t.Sent += c.Sent()
		t.Received += c.Received()
		t.Retransmitted += max(c.Sample.RetransmittedBytes-c.base.RetransmittedBytes, 0)
	}
	return t
}

// Len is how many connections stand.
func (a *Account) Len() int { return len(a.open) }
