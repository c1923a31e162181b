package watch

import (
	"slices"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/verdict/live"
)

// order is the order of connections in the last dump. The next dump has nearly the same one, and following it is
// cheaper than a lookup in a map.
type order struct {
	dumping   bool
	last, now []placed
	at        int // of last
}

type placed struct {
	cookie uint64
	*Connection
}

// ahead is the number of consecutive connections that may be missing from the next dump.
const ahead = 8

// find returns the connection with a cookie; nil where it is not followed.
func (a *Tracker) find(cookie uint64) *Connection {
	for i := a.order.at; i < min(a.order.at+ahead, len(a.order.last)); i++ {
		if one := &a.order.last[i]; one.cookie == cookie && !one.Ended {
			a.order.at = i + 1
			return one.Connection
		}
	}
	return a.open[cookie]
}

// noteOrder notes that a dump contains a connection.
func (a *Tracker) noteOrder(c *Connection) {
	if a.order.dumping {
		a.order.now = append(a.order.now, placed{c.Cookie, c})
	}
}

// Unchanged reports whether a dump contains the same record of a connection as the one before, by its fingerprint,
// which is not 0. Otherwise the record has to be read.
func (a *Tracker) Unchanged(cookie, fingerprint uint64, at time.Duration) bool {
	c := a.find(cookie)
	if c == nil || c.fingerprint != fingerprint {
		return false
	}
	a.reach(c)
	a.reread(c, c.Sample.At, at)
	c.Sample.At = max(at, c.Sample.At)
	c.missing = 0
	a.noteOrder(c)
	if c.queued { // and may still not be read
		a.touch(c)
		c.count(&c.Snapshot)
	}
	return true
}

// touch begins the connection's period, unless it has begun: the next snapshot counts from the last one.
func (a *Tracker) touch(c *Connection) {
	if c.moves != nil && c.moving == a.period {
		return
	}
	a.reach(c)
	if c.moves == nil {
		c.moves = &moves{}
	}
	c.mark = c.counters()
	c.tally = live.Tally{}
	c.mark.At = c.since
	if c.moving != a.period {
		c.moving = a.period
		a.active = append(a.active, c)
	}
}

// reach notes, before the period's first snapshot, until when the connection is known to have been idle.
func (a *Tracker) reach(c *Connection) {
	if c.period != a.period {
		c.since = max(c.Sample.At, a.checkedAt)
		c.period = a.period
	}
}

// reread counts an open connection that was read again.
func (a *Tracker) reread(c *Connection, before, now time.Duration) {
	if before < a.dumpBegan && now >= a.dumpBegan {
		a.fresh++
	}
}

// MarkChecked notes that at a time nothing had changed in the open connections that were not read since the last dump
// or the last call.
func (a *Tracker) MarkChecked(at time.Duration) { a.checkedAt = at }

// BeginDump notes that a dump begins. It may be left out.
func (a *Tracker) BeginDump(at time.Duration) {
	a.dumpBegan = at
	a.fresh = 0
	clear(a.order.last)
	a.order = order{dumping: true, last: a.order.now, now: slices.Grow(a.order.last[:0], len(a.order.now))}
}

// EndDump notes that the dump which began at a time has ended. A dump is not atomic and may miss a socket, so a
// connection is closed only when two dumps missed it; the report of its end was lost then. missing reports whether this
// dump missed any.
func (a *Tracker) EndDump(began time.Duration) (missing bool) {
	a.dumped = true
	a.order.dumping = false
	if len(a.active) > 2*len(a.open)+maxEnded {
		a.active = slices.DeleteFunc(a.active, func(c *Connection) bool { return c.Ended })
	}
	if a.dumpBegan == began && a.fresh == len(a.open) {
		return false
	}
	for _, c := range a.open {
		if c.Sample.At >= began {
			continue
		}
		missing = true
		c.missing = c.missing + 1
		if c.missing >= 2 {
			a.totals.Unfinished++
			a.close(c)
			if len(a.lost) < maxLost {
				c.window = live.Samples{} // close has touched it
				a.lost[c.Cookie] = c
			}
		}
	}
	return missing
}

// Period calls each with every connection that changed or ended in the period, and begins the next period.
func (a *Tracker) Period(each func(*Connection)) {
	a.moved(each)
	clear(a.before)
	a.before, a.active = a.active, a.before
	a.active = a.active[:0]
	a.ended = nil
	a.lighter = 0
	a.period++
}

// moved calls each with the connections that changed or ended in the period so far.
func (a *Tracker) moved(each func(*Connection)) {
	for _, c := range a.active {
		if !c.Ended {
			each(c)
		}
	}
	for _, c := range a.ended {
		each(c)
	}
}

// all calls each with every connection that is open or ended in the period.
func (a *Tracker) all(each func(*Connection)) {
	for _, c := range a.open {
		each(c)
	}
	for _, c := range a.ended {
		each(c)
	}
}

// recent calls each with the open connections that changed in this period or the one before, some of them twice.
func (a *Tracker) recent(each func(*Connection)) {
	for _, of := range [...][]*Connection{a.before, a.active} {
		for _, c := range of {
			if !c.Ended {
				each(c)
			}
		}
	}
}
