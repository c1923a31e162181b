package watch

import (
	"cmp"
	"net/netip"
	"slices"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/sockdiag"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/verdict/live"
)

// Snapshot is the state of one connection at one moment, from a dump, a lookup or the socket's end.
type Snapshot struct {
	Sample        transfer.Sample // At is on the watcher's clock
	Cookie        uint64          // unlike ports, never used again before a restart
	Local, Remote netip.AddrPort
	UID, Inode    uint32
	Cgroup        uint64
	Congestion    string
	// Unread and Unacked are the socket's queues. SendQueued is the used part of SendBuffer. The buffers are 0 where the
	// kernel did not report their sizes.
	Unread, Unacked, SendQueued, SendBuffer, ReceiveBuffer int64
	Reordered                                              uint32 // events of reordering; wraps
	Established                                            bool   // neither end has closed
	Answered                                               bool   // nothing came since the program sent something last
	// ReceiveRTT is the receiver's own estimate of the round trip, SinceData the time since data came last; 0: not known.
	// SinceSent is the time since data was sent last.
	ReceiveRTT, SinceData, SinceSent time.Duration
	DataSent, DataReceived           int64 // segments with payload of this end and of the peer; 0: not known
	// PeerClosed says that the peer's FIN has come, which Sample.Received does not count then.
	PeerClosed   bool
	MaxPacingBps float64 // SO_MAX_PACING_RATE; 0: none
	// Polled reports that the clocks of Sample are not the kernel's but computed from repeated lists of connections.
	Polled bool
}

// Connection is a followed connection.
type Connection struct {
	// These and Sample.At are adjacent: for most connections a dump needs nothing else.
	fingerprint uint64        // of the last dump's record without its ages; 0: another snapshot came since
	since       time.Duration // the last snapshot before the period
	period      uint32        // that since is of, counted from 1
	moving      uint32        // the period of the last snapshot that changed it, and of mark and tally
	queued      bool          // Unread is not 0
	missing     uint8         // dumps in a row without it

	Snapshot  // the last
	FirstSeen time.Duration
	Handshake *transfer.Handshake
	Owner     Owner
	// Ended reports that it is closed. Final reports that the last snapshot is the kernel's own at the socket's end, so
	// that its counters are complete; else the end was missed.
	Ended, Final bool
	// Born says that the connection began after the watch: its counters are all its own.
	Born bool

	syn     uint8         // of what was acknowledged, this is the SYN: 1 where this end began
	base    counters      // when it was first seen, 0 for one that was born since
	*moves                // nil: nothing has changed since it was first seen
	carried int64         // bytes of both directions when the fast tier was chosen last
	opened  time.Duration // when a program was first known to have it open
	chosen  uint32        // the choice of the fast tier that considered it last
	id      sockdiag.ID
}

// moves is kept only for connections with more than one snapshot.
type moves struct {
	mark   counters     // when the period began
	tally  live.Tally   // of the period
	window live.Samples // of the fast tier
}

// Sent is the payload in bytes that the peer has acknowledged since the watch began.
func (c *Connection) Sent() int64 { return max(c.sentSince(&c.base), 0) }

// Received is the payload in bytes that has arrived in order since the watch began. It may be
// one more where the peer closed first, all was read, and no dump came before the end: the kernel counts the FIN and
// does not report it at the end.
func (c *Connection) Received() int64 { return max(c.Sample.Received-c.base.Received, 0) }

// sentSince is the payload that was acknowledged since earlier counters.
func (c *Connection) sentSince(then *counters) int64 {
	now := c.counters()
	return now.payloadSent(int64(c.syn)) - then.payloadSent(int64(c.syn))
}

// learnSYN finds out whether bytes_acked counts a SYN: it does at the end that began. Where
// all that was written is acknowledged, it is the difference to what was sent.
func (c *Connection) learnSYN() {
	s := &c.Sample
	if c.Established && c.Unacked == 0 && s.Acked == s.Sent-s.RetransmittedBytes+1 {
		c.syn = 1
	}
}

// began reports whether this end is known to have begun the connection.
func (c *Connection) began() bool { return c.syn == 1 }

// Totals are sums over all connections, those that are gone included. They never fall.
type Totals struct {
	Sent, Received, Retransmitted int64 // bytes
	Opened, Closed                int64 // connections seen to begin, and to end by the kernel's account
	Unfinished                    int64 // ended without one
}

func (t *Totals) add(more Totals) {
	t.Sent += more.Sent
	t.Received += more.Received
	t.Retransmitted += more.Retransmitted
	t.Opened += more.Opened
	t.Closed += more.Closed
	t.Unfinished += more.Unfinished
}

// Tracker keeps every connection by its cookie. It is pure: the caller provides snapshots and times. It is not safe for
// concurrent use.
type Tracker struct {
	open     map[uint64]*Connection
	period   uint32        // counted from 1
	active   []*Connection // open connections that changed in this period
	before   []*Connection // active of the previous period
	ended    []*Connection // in this period
	lighter  int           // ended connections that were dropped since the last Period
	totals   Totals
	dumped   bool        // the first dump is over: a new connection began after it
	names    *pseudonyms // nil: addresses are shown
	ceilings ceilings
	// shortage is of memory; nil: not checked.
	shortage *shortage
	// fresh is the number of open connections with a snapshot since dumpBegan.
	dumpBegan time.Duration
	fresh     int
	checkedAt time.Duration // see MarkChecked
	order     order
	// lost are connections that dumps no longer contain and without a report of their end yet: the
	// peer reset them, and their program has not closed.
	lost map[uint64]*Connection
}

// maxLost bounds the memory of those whose end may still come.
const maxLost = 4096

// maxEnded is how many connections that are over are kept for one Period, the heaviest.
const maxEnded = 4096

// NewTracker returns an empty Tracker.
func NewTracker() *Tracker {
	return &Tracker{open: map[uint64]*Connection{}, lost: map[uint64]*Connection{}, period: 1}
}

// Knows reports whether a connection is followed, or was until it vanished.
func (a *Tracker) Knows(cookie uint64) bool { return a.open[cookie] != nil || a.lost[cookie] != nil }

// Read adds a snapshot of an open connection.
func (a *Tracker) Read(t Snapshot) *Connection {
	c := a.open[t.Cookie]
	if c == nil {
		c = a.lost[t.Cookie]
		if c != nil {
			a.reopen(c)
		}
	}
	if c == nil {
		c = a.begin(t)
		a.active = append(a.active, c)
	} else {
		a.reads(c, t)
	}
	a.noteOrder(c)
	return c
}

// reads adds a snapshot of an open connection that is followed.
func (a *Tracker) reads(c *Connection, t Snapshot) {
	a.update(c, t)
	c.missing = 0
	c.fingerprint = 0
}

// update adds newer counters to the connection and to the sums.
func (a *Tracker) update(c *Connection, t Snapshot) {
	a.touch(c)
	before := c.Sample.At
	a.sum(c, -1)
	c.update(t)
	a.sum(c, +1)
	a.reread(c, before, c.Sample.At)
}

// sum adds what a connection moved to the totals, times sign.
func (a *Tracker) sum(c *Connection, sign int64) {
	a.totals.Sent += sign * c.Sent()
	a.totals.Received += sign * c.Received()
	a.totals.Retransmitted += sign * max(c.Sample.RetransmittedBytes-c.base.RetransmittedBytes, 0)
}

func (a *Tracker) begin(t Snapshot) *Connection {
	c := &Connection{Snapshot: t, FirstSeen: t.Sample.At, Born: a.dumped}
	if !c.Born {
		c.base = t.counters()
	} else {
		a.totals.Opened++
	}
	c.opened = t.Sample.At
	c.since = t.Sample.At
	c.period = a.period
	c.moving = a.period
	if c.Born {
		c.moves = &moves{mark: counters{At: c.since, Have: t.Sample.Have}} // its clocks began at 0
		c.count(&t)
	}
	c.learnSYN()
	c.queued = t.Unread > 0
	a.open[t.Cookie] = c
	if t.Sample.At >= a.dumpBegan {
		a.fresh++
	}
	a.sum(c, +1)
	return c
}

// update takes newer counters. An older snapshot, such as a lookup that ran while the socket ended, changes nothing.
func (c *Connection) update(t Snapshot) {
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
	c.count(&t)
	if t.SendBuffer == 0 {
		t.SendBuffer = c.SendBuffer
		t.ReceiveBuffer = c.ReceiveBuffer
		t.SendQueued = c.SendQueued
	}
	if t.Congestion == "" {
		t.Congestion = c.Congestion
	}
	if c.PeerClosed && !t.PeerClosed { // an end does not report the state
		t.closedByPeer()
	}
	c.Snapshot = t
	c.queued = t.Unread > 0
	c.learnSYN()
}

// closedByPeer subtracts the peer's FIN from the received bytes. Without payload they do not include it.
func (t *Snapshot) closedByPeer() {
	t.PeerClosed = true
	t.Sample.Received = max(t.Sample.Received-1, 0)
}

// End adds the kernel's last record of a socket. A connection that no dump contained began and ended between two of
// them: it is counted, and its owner is unknown.
func (a *Tracker) End(t Snapshot) *Connection {
	if c := a.lost[t.Cookie]; c != nil {
		a.found(c, t)
		return nil
	}
	c := a.open[t.Cookie]
	if c == nil {
		if !a.dumped {
			return nil // it ended during the first dump: its bytes came before the watch
		}
		c = a.begin(t)
	}
	if t.cleared(c) {
		a.totals.Unfinished++
		a.close(c)
		return c
	}
	a.update(c, t)
	c.Final = true
	a.close(c)
	a.totals.Closed++
	return c
}

// cleared reports that a socket's last record is empty: its program reset it (tcp_disconnect, net/ipv4/tcp.c). The
// last snapshot remains valid.
func (t *Snapshot) cleared(c *Connection) bool {
	return t.Sample.Acked < c.Sample.Acked || t.Sample.Received < c.Sample.Received
}

// reopen takes back a connection that two dumps missed. It remains counted as unfinished, since no sum falls.
func (a *Tracker) reopen(c *Connection) {
	delete(a.lost, c.Cookie)
	c.Ended = false
	a.open[c.Cookie] = c
	a.reread(c, -1, c.Sample.At)
	a.ended = slices.DeleteFunc(a.ended, func(e *Connection) bool { return e == c })
}

// found adds what a connection did between the last dump that had it and its end.
func (a *Tracker) found(c *Connection, t Snapshot) {
	delete(a.lost, c.Cookie)
	if t.cleared(c) {
		return
	}
	c.Ended = false
	a.sum(c, -1)
	c.update(t)
	a.sum(c, +1)
	c.Ended = true
	c.Final = true
}

func (a *Tracker) close(c *Connection) {
	a.touch(c)
	c.Ended = true
	delete(a.open, c.Cookie)
	if c.Sample.At >= a.dumpBegan {
		a.fresh--
	}
	a.ended = append(a.ended, c)
	if len(a.ended) >= 2*maxEnded {
		slices.SortFunc(a.ended, func(a, b *Connection) int {
			return cmp.Compare(b.Sent()+b.Received(), a.Sent()+a.Received())
		})
		a.lighter += len(a.ended) - maxEnded
		a.ended = slices.Clone(a.ended[:maxEnded])
	}
}

// Len returns the number of open connections.
func (a *Tracker) Len() int { return len(a.open) }
