package capture

import (
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/fullpipe-net/fullpipe/internal/flow"
)

// batchSize is how many segments are decoded before they are followed. Handing over may wake a
// processor; all batches together fit its caches. Verdicts depend on it where records are out
// of order, so it is the same however many workers there are.
const batchSize = 1024

// batch is what the workers read, each its own of the segments, before it is filled again.
type batch struct {
	segments []flow.Segment
	n        int
	shares   [][]uint16 // for each worker, which of the segments
	readers  atomic.Int32
}

func newBatch(workers int) *batch {
	b := &batch{segments: make([]flow.Segment, batchSize), shares: make([][]uint16, workers)}
	for i := range b.shares {
		b.shares[i] = make([]uint16, 0, batchSize)
	}
	return b
}

// share gives the segments to the workers. It returns how many have something to do.
func (b *batch) share() (busy int32) {
	for i := range b.shares {
		b.shares[i] = b.shares[i][:0]
	}
	for i := range b.segments[:b.n] {
		w := b.segments[i].Share(len(b.shares))
		b.shares[w] = append(b.shares[w], uint16(i))
	}
	for _, mine := range b.shares {
		if len(mine) > 0 {
			busy++
		}
	}
	return busy
}

// follow follows the connections that r reads, and returns their tables.
func follow(r *reader, cfg Config) []*flow.Table {
	n := cfg.Workers
	if n <= 0 {
		n = runtime.GOMAXPROCS(0)
	}
	if n == 1 {
		return []*flow.Table{followAlone(r, cfg.Flow)}
	}
	return followTogether(r, cfg.Flow, n)
}

func followAlone(r *reader, cfg flow.Config) *flow.Table {
	table := flow.NewTable(cfg)
	b := newBatch(0)
	for more := true; more; {
		var rest []flow.Segment
		rest, more = r.fill(b)
		for i := range b.segments[:b.n] {
			table.Add(&b.segments[i])
		}
		b.n = copy(b.segments, rest)
	}
	return table
}

// worker follows its share of the connections. When nothing of that waits, it reads on if
// nobody else does.
type worker struct {
	table *flow.Table
	share int
	mine  chan *batch // with something of its share, in the order of the capture
	*crew
}

// crew is what workers have together. There is room for all batches in each channel.
type crew struct {
	turn    chan *turn // a worker takes it out to read, and puts it back
	free    chan *batch
	workers []*worker
}

// turn is what goes from one who reads to the next.
type turn struct {
	*reader
	filling *batch // begins with what has no final place yet
}

func followTogether(r *reader, cfg flow.Config, n int) (tables []*flow.Table) {
	const ahead = 8 // batches for a worker to fall behind by
	cfg.Shares = n
	c := &crew{turn: make(chan *turn, 1), free: make(chan *batch, ahead+1)}
	for range ahead {
		c.free <- newBatch(n)
	}
	c.turn <- &turn{r, newBatch(n)}
	for i := range n {
		w := &worker{table: flow.NewTable(cfg), share: i, mine: make(chan *batch, ahead+1), crew: c}
		c.workers = append(c.workers, w)
		tables = append(tables, w.table)
	}
	var wait sync.WaitGroup
	for _, w := range c.workers {
		wait.Go(w.work)
	}
	wait.Wait()
	return tables
}

// work reads and follows until everything is.
func (w *worker) work() {
	for {
		select {
		case t := <-w.turn: // reading goes first, so that nobody waits for something to do
			w.read(t)
		default:
			select {
			case t := <-w.turn:
				w.read(t)
			case b, more := <-w.mine:
				if !more {
					return
				}
				w.add(b)
			}
		}
	}
}

// read reads one batch and shares it out. While there is no room for more, the worker
// follows what is its own instead.
func (w *worker) read(t *turn) {
	var next *batch
	select {
	case next = <-w.free:
	default:
		select {
		case next = <-w.free:
		case b := <-w.mine:
			w.turn <- t
			w.add(b)
			return
		}
	}
	b := t.filling
	rest, more := t.fill(b)
	next.n = copy(next.segments, rest)
	t.filling = next
	w.shareOut(b)
	if more {
		w.turn <- t
		return
	}
	for _, to := range w.workers {
		close(to.mine)
	}
}

// shareOut gives a batch to the workers for which there is something in it.
func (c *crew) shareOut(b *batch) {
	busy := b.share()
	b.readers.Store(busy)
	for i, to := range c.workers {
		if len(b.shares[i]) > 0 {
			to.mine <- b
		}
	}
	if busy == 0 {
		c.free <- b
	}
}

// add follows what is the worker's of a batch.
func (w *worker) add(b *batch) {
	for _, i := range b.shares[w.share] {
		w.table.Add(&b.segments[i])
	}
	if b.readers.Add(-1) == 0 {
		w.free <- b
	}
}
