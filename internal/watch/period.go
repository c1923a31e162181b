package watch

import (
	"slices"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/verdict/watched"
)

// What dumps and periods do to the account.

// order is in which order the last dump told of connections. The next one's is nearly the same, and to walk
// along is cheaper than to ask a map.
type order struct {
	dumping   bool
	last, now []placed
	at        int // of last
}

type placed struct {
	cookie uint64
	*Connection
}

// ahead is how many connections in a row may have gone from one dump to the next.
const ahead = 8

// find is the connection of that cookie; nil where it is not followed.
func (a *Account) find(cookie uint64) *Connection {
	for i := a.order.at; i < min(a.order.at+ahead, len(a.order.last)); i++ {
		if one := &a.order.last[i]; one.cookie == cookie && !one.Ended {
			a.order.at = i + 1
			return one.Connection
		}
	}
	return a.open[cookie]
}

// told notes that a dump told of a connection.
func (a *Account) told(c *Connection) {
	if a.order.dumping {
		a.order.now = append(a.order.now, placed{c.Cookie, c})
	}
}

// Still says that a dump told of a connection just what the one before it had: print stands
// for all that was told, and is not 0. False: it has to be read.
func (a *Account) Still(cookie, print uint64, at time.Duration) bool {
	c := a.find(cookie)
	if c == nil || c.print != print {
		return false
	}
	a.reach(c)
	a.reread(c, c.Sample.At, at)
	c.Sample.At = max(at, c.Sample.At)
	c.missing = 0
	a.told(c)
	if c.queued { // and may still not be read
		a.touch(c)
		c.count(&c.Told)
	}
	return true
}

// touch begins the connection's period, unless it has begun: what it is told of next counts from
// what was told last.
func (a *Account) touch(c *Connection) {
	if c.moves != nil && c.moving == a.period {
		return
	}
	a.reach(c)
	if c.moves == nil {
		c.moves = &moves{}
	}
	c.mark = c.counters()
	c.tally = watched.Tally{}
	c.mark.At = c.since
	if c.moving != a.period {
		c.moving = a.period
		a.active = append(a.active, c)
	}
}

// reach takes note, before the period's first reading, until when the connection is known to have lain
// still.
func (a *Account) reach(c *Connection) {
	if c.period != a.period {
		c.since = max(c.Sample.At, a.looked)
		c.period = a.period
	}
}

// reread counts one that stands and was read again.
func (a *Account) reread(c *Connection, before, now time.Duration) {
	if before < a.dumping && now >= a.dumping {
		a.fresh++
	}
}

// Looked says that of those that stand and were not told of since the last dump, or since this was said
// last, nothing had changed at that time.
func (a *Account) Looked(at time.Duration) { a.looked = at }

// Dumping says that a dump begins. It may be left out.
func (a *Account) Dumping(at time.Duration) {
	a.dumping = at
	a.fresh = 0
	clear(a.order.last)
	a.order = order{dumping: true, last: a.order.now, now: slices.Grow(a.order.last[:0], len(a.order.now))}
}

// Dumped says that a dump has ended which began at the given time. A dump is not one
// moment and may miss a socket, so one is gone only when two did not have it; the message
// of its end was lost then. missing says that there are such as one did not have.
func (a *Account) Dumped(began time.Duration) (missing bool) {
	a.first = true
	a.order.dumping = false
	if len(a.active) > 2*len(a.open)+mostEnded {
		a.active = slices.DeleteFunc(a.active, func(c *Connection) bool { return c.Ended })
	}
	if a.dumping == began && a.fresh == len(a.open) {
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
			if len(a.lost) < mostLost {
				c.window = watched.Samples{} // close has touched it
				a.lost[c.Cookie] = c
			}
		}
	}
	return missing
}

// Period calls each with every connection that was told of in the period, or ended in it, and
// begins the next one. Of the others nothing has changed.
func (a *Account) Period(each func(*Connection)) {
	a.moved(each)
	clear(a.before)
	a.before, a.active = a.active, a.before
	a.active = a.active[:0]
	a.ended = nil
	a.lighter = 0
	a.period++
}

// moved calls each with those of the period up to now.
func (a *Account) moved(each func(*Connection)) {
	for _, c := range a.active {
		if !c.Ended {
			each(c)
		}
	}
	for _, c := range a.ended {
		each(c)
	}
}

// all calls each with every connection that stands or ended in the period.
func (a *Account) all(each func(*Connection)) {
	for _, c := range a.open {
		each(c)
	}
	for _, c := range a.ended {
		each(c)
	}
}

// recent calls each with the connections that stand and were told of in this period or the one
// before, some of them twice.
func (a *Account) recent(each func(*Connection)) {
	for _, of := range [...][]*Connection{a.before, a.active} {
		for _, c := range of {
			if !c.Ended {
				each(c)
			}
		}
	}
}
