package drops

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/lost"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// countInterval is the time between two snapshots of the counters that the kernel reads fast.
const countInterval = 250 * time.Millisecond

// counterKey identifies a counter of this host.
type counterKey struct{ name, device, rule string }

// counter is a counter at one time.
type counter struct {
	lost.Counter
	qdisc          string
	packets, bytes uint64
	slow           bool // read only at the beginning and the end
}

type snapshot map[counterKey]counter

// Counting reads this host's counters of dropped packets during a transfer. It needs no privileges,
// but CAP_NET_ADMIN for nftables and root for connection tracking. A nil Counting counts nothing.
type Counting struct {
	before snapshot
	after  snapshot // since Stop
	stop   func()
	ended  chan struct{}

	mu     sync.Mutex // guards what follows
	origin time.Time  // of the transfer's clock
	last   snapshot
	moves  map[counterKey][]transfer.Move
}

// Count begins to count. The caller ends it with Stop.
func Count() *Counting {
	before := snapshot{}
	readCounters(before, true)
	if len(before) == 0 {
		return nil
	}
	c := newCounting(before)
	stopped := make(chan struct{})
	c.stop = sync.OnceFunc(func() {
		close(stopped)
		<-c.ended
		c.after = snapshot{}
		readCounters(c.after, true)
		c.take(c.after)
	})
	go c.follow(stopped)
	return c
}

func newCounting(before snapshot) *Counting {
	return &Counting{before: before, last: before, origin: time.Now(), moves: map[counterKey][]transfer.Move{},
		ended: make(chan struct{})}
}

func (c *Counting) follow(stopped <-chan struct{}) {
	defer close(c.ended)
	tick := time.NewTicker(countInterval)
	defer tick.Stop()
	for {
		select {
		case <-stopped:
			return
		case <-tick.C:
			now := snapshot{}
			readCounters(now, false)
			c.take(now)
		}
	}
}

// take adds the moves since the last snapshot.
func (c *Counting) take(now snapshot) {
	c.mu.Lock()
	defer c.mu.Unlock()
	at := time.Since(c.origin)
	for key, n := range now {
		before, known := c.last[key]
		if known && n.packets > before.packets && len(c.moves[key]) < transfer.MaxMoves {
			c.moves[key] = append(c.moves[key], transfer.Move{At: at, Packets: int64(n.packets - before.packets)})
		}
	}
	c.last = now
}

// Running sets the transfer's clock: elapsed of its time is over.
func (c *Counting) Running(elapsed time.Duration) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	origin := time.Now().Add(-elapsed)
	for _, all := range c.moves {
		for i := range all {
			all[i].At += c.origin.Sub(origin)
		}
	}
	c.origin = origin
}

// Stop ends the counting. It may be called again.
func (c *Counting) Stop() {
	if c != nil {
		c.stop()
	}
}

// Moved returns the counters that moved until Stop, the greatest first: those of packets that this
// host sends or receives, and of one protocol or any.
func (c *Counting) Moved(protocol string, sends bool) (all []transfer.DropCounter) {
	if c == nil {
		return nil
	}
	for key, n := range c.after {
		before, known := c.before[key]
		concerns := (n.Protocol == "" || n.Protocol == protocol) && (sends && n.Sends || !sends && n.Receives)
		if !known || n.packets <= before.packets || !concerns {
			continue
		}
		d := transfer.DropCounter{Name: key.name, Place: string(n.Kind), Device: key.device, Qdisc: n.qdisc, Rule: key.rule,
			Packets: int64(n.packets - before.packets), Merged: n.Merged}
		if n.bytes > before.bytes { // else not counted
			d.Bytes = int64(n.bytes - before.bytes)
		}
		total := int64(0)
		for _, m := range c.moves[key] {
			total += m.Packets
		}
		if total == d.Packets && !n.slow {
			d.Moves = c.moves[key]
		}
		all = append(all, d)
	}
	slices.SortFunc(all, func(a, b transfer.DropCounter) int {
		return cmp.Or(cmp.Compare(b.Packets, a.Packets), cmp.Compare(a.Name+a.Device+a.Rule, b.Name+b.Device+b.Rule))
	})
	return all[:min(len(all), maxCounters)]
}

// maxCounters limits the counters of one transfer.
const maxCounters = 64
