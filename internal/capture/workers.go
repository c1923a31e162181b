package capture

import (
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/fullpipe-net/fullpipe/internal/flow"
)

// How many segments are decoded before they are followed: few enough to stay in the
// processor's nearest cache where one goroutine does both. Handing over may wake a
// processor, so there it takes more of them, but all batches together fit its caches.
const (
	batchAlone  = 256
	batchShared = 1024
)

// batch is what the workers read, each its own of the segments, before it is filled again.
type batch struct {
	segments []flow.Segment
	n        int
	shares   [][]uint16 // for each worker, which of the segments
	readers  atomic.Int32
}

func newBatch(size, workers int) *batch {
	b := &batch{segments: make([]flow.Segment, size), shares: make([][]uint16, workers)}
	for i := range b.shares {
		b.shares[i] = make([]uint16, 0, size)
	}
	return b
}

// share gives the segments to the workers; it answers how many have something to do.
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

// workers follow connections, each its own share of them.
type workers struct {
	tables  []*flow.Table
	filling *batch
	order   flow.Order
	full    []chan *batch // none: the one that reads follows too
	free    chan *batch
	wg      sync.WaitGroup
}

// startWorkers starts n, or as many as there are processors; with one of these, none.
func startWorkers(n int, cfg flow.Config) *workers {
	if n <= 0 {
		n = runtime.GOMAXPROCS(0)
		if n == 1 {
			return &workers{tables: []*flow.Table{flow.NewTable(cfg)}, filling: newBatch(batchAlone, 0)}
		}
	}
	const ahead = 8 // batches for a worker to fall behind by
	cfg.Shares = n
	w := &workers{filling: newBatch(batchShared, n), free: make(chan *batch, ahead+1)}
	for range ahead + 1 {
		w.free <- newBatch(batchShared, n)
	}
	for i := range n {
		table, full := flow.NewTable(cfg), make(chan *batch, ahead)
		w.tables, w.full = append(w.tables, table), append(w.full, full)
		w.wg.Go(func() { w.follow(table, i, full) })
	}
	return w
}

func (w *workers) follow(table *flow.Table, share int, full <-chan *batch) {
	for b := range full {
		for _, i := range b.shares[share] {
			table.Add(&b.segments[i])
		}
		if b.readers.Add(-1) == 0 {
			w.free <- b
		}
	}
}

// room is where the next segments are decoded to; there is always some.
func (w *workers) room() []flow.Segment { return w.filling.segments[w.filling.n:] }

// took hands the first n segments of room to the workers, sooner or later.
func (w *workers) took(n int) {
	if w.filling.n += n; w.filling.n == len(w.filling.segments) {
		w.flush(false)
	}
}

// flush follows the segments that have their final place; the others stay.
func (w *workers) flush(last bool) {
	b := w.filling
	n := b.n
	b.n = w.order.Settle(b.segments[:n], last)
	rest := b.segments[b.n:n]
	if len(w.full) == 0 {
		for i := range b.segments[:b.n] {
			w.tables[0].Add(&b.segments[i])
		}
		b.n = copy(b.segments, rest)
		return
	}
	busy := b.share()
	if busy == 0 {
		return
	}
	b.readers.Store(busy)
	for i, full := range w.full {
		if len(b.shares[i]) > 0 {
			full <- b
		}
	}
	w.filling = <-w.free
	w.filling.n = copy(w.filling.segments, rest)
}

// finish ends the workers and gives their tables.
func (w *workers) finish() []*flow.Table {
	w.flush(true)
	for _, full := range w.full {
		close(full)
	}
	w.wg.Wait()
	return w.tables
}
