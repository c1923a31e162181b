package capture

import (
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/fullpipe-net/fullpipe/internal/flow"
)

// batchSize is how many segments are decoded before they are followed: few enough to stay
// in the processor's caches, enough for the hand-over to cost nothing.
const batchSize = 256

// batch is what all workers read before it is filled again.
type batch struct {
	segments [batchSize]flow.Segment
	n        int
	readers  atomic.Int32
}

// workers follow connections, each its own share of them.
type workers struct {
	tables  []*flow.Table
	filling *batch
	full    []chan *batch // none: the one that reads follows too
	free    chan *batch
	wg      sync.WaitGroup
}

// startWorkers starts n, or as many as there are processors; with one of these, none.
func startWorkers(n int, cfg flow.Config) *workers {
	if n <= 0 {
		n = runtime.GOMAXPROCS(0)
		if n == 1 {
			return &workers{tables: []*flow.Table{flow.NewTable(cfg)}, filling: &batch{}}
		}
	}
	const ahead = 4 // batches for a worker to fall behind by
	w := &workers{filling: &batch{}, free: make(chan *batch, ahead+2)}
	for range ahead + 1 {
		w.free <- &batch{}
	}
	for i := range n {
		cfg.Share, cfg.Shares = i, n
		table, full := flow.NewTable(cfg), make(chan *batch, ahead)
		w.tables, w.full = append(w.tables, table), append(w.full, full)
		w.wg.Go(func() { w.follow(table, full) })
	}
	return w
}

func (w *workers) follow(table *flow.Table, full <-chan *batch) {
	for b := range full {
		table.AddAll(b.segments[:b.n])
		if b.readers.Add(-1) == 0 {
			w.free <- b
		}
	}
}

// room is where the next segments are decoded to; there is always some.
func (w *workers) room() []flow.Segment { return w.filling.segments[w.filling.n:] }

// took hands the first n segments of room to the workers, sooner or later.
func (w *workers) took(n int) {
	if w.filling.n += n; w.filling.n == batchSize {
		w.flush()
	}
}

func (w *workers) flush() {
	b := w.filling
	if len(w.full) == 0 {
		w.tables[0].AddAll(b.segments[:b.n])
		b.n = 0
		return
	}
	b.readers.Store(int32(len(w.full)))
	for _, full := range w.full {
		full <- b
	}
	w.filling = <-w.free
	w.filling.n = 0
}

// finish ends the workers and gives their tables.
func (w *workers) finish() []*flow.Table {
	w.flush()
	for _, full := range w.full {
		close(full)
	}
	w.wg.Wait()
	return w.tables
}
