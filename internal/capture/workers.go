package capture

import (
	"runtime"
	"sync"

	"github.com/fullpipe-net/fullpipe/internal/flow"
)

// batch is how many segments are decoded before they are followed: few enough to stay in
// the processor's first cache, enough for the hand-over to cost nothing.
const batch = 256

// workers follow connections, each its own share of them.
type workers struct {
	tables  []*flow.Table
	filling [][]flow.Segment
	full    []chan []flow.Segment // none: the one that reads follows too
	free    chan []flow.Segment
	scratch flow.Segment
	wg      sync.WaitGroup
}

func startWorkers(n int, cfg flow.Config) *workers {
	if n <= 0 {
		n = runtime.GOMAXPROCS(0) - 1
	}
	if cfg.Connections == 0 {
		cfg.Connections = flow.MostConnections
	}
	cfg.Connections = max(cfg.Connections/max(n, 1), 1)
	w := &workers{free: make(chan []flow.Segment, 8*n)}
	for range max(n, 1) {
		w.tables = append(w.tables, flow.NewTable(cfg))
		w.filling = append(w.filling, make([]flow.Segment, 0, batch))
	}
	for _, table := range w.tables[:n] {
		full := make(chan []flow.Segment, 4)
		w.full = append(w.full, full)
		w.wg.Go(func() { w.follow(table, full) })
	}
	return w
}

func (w *workers) follow(table *flow.Table, full <-chan []flow.Segment) {
	for segments := range full {
		table.AddAll(segments)
		select {
		case w.free <- segments[:0]:
		default:
		}
	}
}

// next is where the next segment is decoded to: in place when there is one table.
func (w *workers) next() *flow.Segment {
	if len(w.tables) > 1 {
		return &w.scratch
	}
	b := w.filling[0]
	return &b[:len(b)+1][len(b)]
}

// take hands a decoded segment to the worker that follows its connection.
func (w *workers) take(s *flow.Segment) {
	i := 0
	if len(w.tables) > 1 {
		i = int(s.Hash() >> 32 % uint64(len(w.tables)))
		w.filling[i] = append(w.filling[i], *s)
	} else {
		w.filling[0] = w.filling[0][:len(w.filling[0])+1]
	}
	if len(w.filling[i]) == batch {
		w.flush(i)
	}
}

func (w *workers) flush(i int) {
	if len(w.full) == 0 {
		w.tables[i].AddAll(w.filling[i])
		w.filling[i] = w.filling[i][:0]
		return
	}
	w.full[i] <- w.filling[i]
	select {
	case w.filling[i] = <-w.free:
	default:
		w.filling[i] = make([]flow.Segment, 0, batch)
	}
}

// finish ends the workers and gives their tables.
func (w *workers) finish() []*flow.Table {
	for i := range w.filling {
		w.flush(i)
	}
	for _, full := range w.full {
		close(full)
	}
	w.wg.Wait()
	return w.tables
}
