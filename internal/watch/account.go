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

	base    transfer.Sample // counters when it was first seen, 0 for one that was born since
	mark    transfer.Sample // when the period began
	missing int             // dumps in a row without it
	carried int64           // bytes of both directions when the fast tier was chosen last
	window  []Told          // of the fast tier, oldest first
}

// Sent is the payload in bytes that the peer has acknowledged since the watch began.
func (c *Connection) Sent() int64 { return max(payloadSent(&c.Sample)-payloadSent(&c.base), 0) }

// Received is the payload in bytes that has arrived in order since the watch began. The
// peer's FIN counts as one on a connection on which payload came.
func (c *Connection) Received() int64 { return max(c.Sample.Received-c.base.Received, 0) }

// payloadSent is what bytes_acked says without SYN and FIN: what was sent, and not again,
// bounds it. Before Linux 4.19 only the SYN can be taken off.
func payloadSent(s *transfer.Sample) int64 {
	if s.Sent == 0 {
		return max(s.Acked-1, 0)
	}
	return min(s.Acked, s.Sent-s.RetransmittedBytes)
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
}

// mostEnded is how many connections that are over are kept for one Period, the heaviest.
const mostEnded = 4096

// NewAccount is an empty one.
func NewAccount() *Account { return &Account{open: map[uint64]*Connection{}} }

// Open is the connection of that cookie; nil where it is not followed.
func (a *Account) Open(cookie uint64) *Connection { return a.open[cookie] }

// Read takes a reading of a connection that stands.
func (a *Account) Read(t Told) *Connection {
	c := a.open[t.Cookie]
	if c == nil {
		c = a.begin(t)
	}
	c.update(t)
	c.missing = 0
	return c
}

func (a *Account) begin(t Told) *Connection {
	c := &Connection{Told: t, Seen: t.Sample.At, Born: a.first}
	if !c.Born {
		c.base = t.Sample
	} else {
		a.totals.Opened++
	}
	c.mark = c.base
	c.mark.At = t.Sample.At
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
}

// End takes the kernel's last account of a socket. One that no dump ever saw was born and
// ended between two of them: it is counted, and nobody knows whose it was.
func (a *Account) End(t Told) *Connection {
	c := a.open[t.Cookie]
	if c == nil {
		if !a.first {
			return nil // it ended while the first dump ran: what it did before is not ours to count
		}
		c = a.begin(t)
	}
	c.update(t)
	c.Final = true
	a.close(c)
	a.totals.Closed++
	return c
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
		}
	}
}

// Period calls each with every connection that stood in the period or ended in it, and
// begins the next one.
func (a *Account) Period(each func(*Connection)) {
	for _, c := range a.open {
		each(c)
		c.mark = c.Sample
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
