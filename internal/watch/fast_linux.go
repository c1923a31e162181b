package watch

import (
	"cmp"
	"slices"

	"github.com/fullpipe-net/fullpipe/internal/sockdiag"
)

// sample looks up the connections of the fast tier.
func (w *watcher) sample() error {
	if err := w.takeEnds(); err != nil || len(w.fast) == 0 {
		return err
	}
	_, err := w.asking.Look(w.fast, askFast, func(s *sockdiag.Socket) {
		c := w.account.Open(s.Cookie)
		if c == nil || len(s.Info) == 0 {
			return
		}
		w.account.Read(w.told(s, w.now()))
		c.window.add(&c.Told, w.cfg.Window)
	})
	return err
}

// choose takes the connections into the fast tier that have moved most since it was called
// last, whatever namespace they are in; at first, and among those that moved nothing, in their lives.
func (w *watcher) choose() {
	most := w.cfg.Sampled
	if most <= 0 {
		return
	}
	busiest := make([]contender, 0, most+1)
	w.choices++
	choices := w.choices
	everywhere := []*watcher{w}
	if w.places != nil {
		for _, one := range w.places.open {
			everywhere = append(everywhere, one.watcher)
		}
	}
	for _, w := range everywhere {
		contend := func(c *Connection) {
			if c.chosen == choices {
				return
			}
			c.chosen = choices
			total := c.Sample.Acked + c.Sample.Received
			one := contender{c, w, total - c.carried, total}
			c.carried = total
			least := len(busiest) == most
			if least && one.compare(busiest[most-1]) >= 0 || !w.matches(c) {
				c.window = samples{}
				return
			}
			at, _ := slices.BinarySearchFunc(busiest, one, contender.compare)
			busiest = slices.Insert(busiest, at, one)
			if least {
				busiest[most].c.window = samples{}
				busiest = busiest[:most]
			}
		}
		w.account.recent(contend)
		for i := range w.fast { // which may move nothing now
			if c := w.account.Open(w.fast[i].Cookie()); c != nil {
				contend(c)
			}
		}
		w.fast = w.fast[:0]
	}
	for _, one := range busiest {
		one.by.fast = append(one.by.fast, one.c.id)
	}
}

// contender is a connection that may be sampled.
type contender struct {
	c            *Connection
	by           *watcher
	moved, total int64 // bytes: since it was one last, and ever
}

// compare puts those first that are rather sampled.
func (a contender) compare(b contender) int {
	return cmp.Or(cmp.Compare(b.moved, a.moved), cmp.Compare(b.total, a.total), cmp.Compare(a.c.Cookie, b.c.Cookie))
}
