package watch

import (
	"cmp"
	"slices"

	"github.com/fullpipe-net/fullpipe/internal/sockdiag"
	"github.com/fullpipe-net/fullpipe/internal/verdict/live"
)

// fast is the fast tier: the sockets to look up and their connections.
type fast struct {
	ids   []sockdiag.ID
	of    []*Connection
	spare *[]live.Samples // emptied, for those that come in later
}

// sample looks up the connections of the fast tier.
func (w *watcher) sample() error {
	if err := w.drainDestroyEvents(); err != nil || len(w.fast.ids) == 0 {
		return err
	}
	left := w.fast.of // results come in the order of the requests
	_, err := w.sockets.Look(w.fast.ids, askFast, func(s *sockdiag.Socket) {
		for len(left) > 0 && left[0].Cookie != s.Cookie {
			left = left[1:]
		}
		if len(left) == 0 || left[0].Ended || len(s.Info) == 0 {
			return
		}
		c := left[0]
		w.account.reads(c, w.snapshot(s, w.now()))
		if c.window.Of == nil {
			c.window = w.fast.empty()
		}
		c.window.Add(&c.Sample, c.queues(), w.cfg.Window)
	})
	return err
}

// empty returns Samples without samples.
func (f *fast) empty() (w live.Samples) {
	if n := len(*f.spare); n > 0 {
		w = (*f.spare)[n-1]
		*f.spare = (*f.spare)[:n-1]
	}
	return w
}

// leave drops a connection's samples.
func (f *fast) leave(c *Connection) {
	if c.moves == nil || c.window.Of == nil {
		return
	}
	*f.spare = append(*f.spare, live.Samples{Of: c.window.Of[:0], Queues: c.window.Queues[:0]})
	c.window = live.Samples{}
}

// choose selects the connections of the fast tier: those of all namespaces that moved most since the last call, then
// those that moved most since they began.
func (w *watcher) choose() {
	most := w.cfg.Sampled
	if most <= 0 {
		return
	}
	busiest := make([]contender, 0, most+1)
	w.choices++
	choices := w.choices
	everywhere := []*watcher{w}
	if w.netns != nil {
		for _, one := range w.netns.open {
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
				w.fast.leave(c)
				return
			}
			at, _ := slices.BinarySearchFunc(busiest, one, contender.compare)
			busiest = slices.Insert(busiest, at, one)
			if least {
				busiest[most].by.fast.leave(busiest[most].c)
				busiest = busiest[:most]
			}
		}
		w.account.recent(contend)
		for _, c := range w.fast.of { // which may be idle now
			if !c.Ended {
				contend(c)
			}
		}
		clear(w.fast.of)
		w.fast.ids = w.fast.ids[:0]
		w.fast.of = w.fast.of[:0]
	}
	for _, one := range busiest {
		one.by.fast.ids = append(one.by.fast.ids, one.c.id)
		one.by.fast.of = append(one.by.fast.of, one.c)
	}
}

// contender is a candidate for the fast tier.
type contender struct {
	c            *Connection
	by           *watcher
	moved, total int64 // bytes: since it was one last, and ever
}

// compare sorts by the bytes moved, the most first.
func (a contender) compare(b contender) int {
	return cmp.Or(cmp.Compare(b.moved, a.moved), cmp.Compare(b.total, a.total), cmp.Compare(a.c.Cookie, b.c.Cookie))
}
