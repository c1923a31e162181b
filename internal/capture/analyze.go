package capture

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"sync"

	"github.com/fullpipe-net/fullpipe/internal/flow"
)

// Config says what Analyze reads and keeps.
type Config struct {
	// Workers is how many goroutines follow connections beside the one that reads; 0 is
	// one less than the processors. With one processor the one that reads follows too.
	Workers int
	Flow    flow.Config
	// Progress, when not nil, is called now and then with the packets read so far.
	Progress func(packets int64)
}

// Analysis is what captures hold.
type Analysis struct {
	Connections []*flow.Connection // in the order of their beginnings
	Packets     int64
	Segments    int64 // TCP segments
	Duplicates  int64 // captured twice
	Unfollowed  int64 // segments of connections past the bound
	// Warnings are for people: damage, what could not be read, and how much of it.
	Warnings []string
	Files    []FileSummary
}

// FileSummary is what was read of one file.
type FileSummary struct {
	Name    string  `json:"name"`
	Packets int64   `json:"packets"`
	Damage  *Damage `json:"-"`
}

// batch is how many segments go to a worker at once: it costs nothing to share the work
// then, and a batch stays in the processor's cache.
const batch = 512

type item struct {
	kind Kind
	seg  flow.Segment
}

// Analyze reads files, which are the parts of one capture in any order, and follows the
// connections in them. A file that cannot be read at all is an error; damage within one
// is a warning. When ctx ends, what was read until then is returned with its error.
func Analyze(ctx context.Context, cfg Config, files ...*File) (*Analysis, error) {
	a := &Analysis{}
	workers := cfg.Workers
	if workers <= 0 {
		workers = runtime.GOMAXPROCS(0) - 1
	}
	pool := startWorkers(workers, cfg.Flow)
	var counts [UnknownLink + 1]int64
	var err error
	if len(files) > 1 {
		slices.SortStableFunc(files, func(x, y *File) int { return cmp.Compare(x.begins(), y.begins()) })
	}
	for _, f := range files {
		if err = a.read(ctx, cfg, f, pool, &counts); err != nil {
			break
		}
	}
	for _, t := range pool.finish() {
		a.Connections = append(a.Connections, t.Finish()...)
		a.Segments += t.Segments
		a.Duplicates += t.Duplicates
		a.Unfollowed += t.Unfollowed
	}
	slices.SortStableFunc(a.Connections, func(x, y *flow.Connection) int {
		return int(min(max(x.Started-y.Started, -1), 1))
	})
	a.warn(&counts)
	return a, err
}

func (a *Analysis) warn(counts *[UnknownLink + 1]int64) {
	for kind, text := range map[Kind]string{
		Cut:         "%d TCP packets were captured too short for their headers; capture at least 96 bytes (tcpdump -s 128)",
		Malformed:   "%d packets have lengths that contradict each other and were passed over",
		UnknownLink: "%d packets are of a link type that is not known here",
	} {
		if counts[kind] > 0 {
			a.Warnings = append(a.Warnings, fmt.Sprintf(text, counts[kind]))
		}
	}
	slices.Sort(a.Warnings)
	if a.Unfollowed > 0 {
		a.Warnings = append(a.Warnings, fmt.Sprintf("%d segments belong to connections past the bound and were not followed", a.Unfollowed))
	}
	for _, f := range a.Files {
		if f.Damage != nil {
			a.Warnings = append(a.Warnings, f.Damage.Error())
		}
	}
}

func (a *Analysis) read(ctx context.Context, cfg Config, f *File, pool *workers, counts *[UnknownLink + 1]int64) error {
	summary := FileSummary{Name: f.name}
	defer func() { a.Files = append(a.Files, summary) }()
	var p Packet
	for {
		if err := f.Next(&p); err != nil {
			var damage *Damage
			switch {
			case errors.Is(err, io.EOF):
				return nil
			case errors.As(err, &damage):
				summary.Damage = damage
				return nil
			}
			return err
		}
		a.Packets++
		summary.Packets++
		next := pool.next()
		next.kind = Decode(&p, &next.seg)
		counts[next.kind]++
		if next.kind == TCP || next.kind == TooBig {
			pool.take(next)
		}
		if a.Packets%(1<<16) == 0 {
			if cfg.Progress != nil {
				cfg.Progress(a.Packets)
			}
			if err := ctx.Err(); err != nil {
				return err
			}
		}
	}
}

// workers follow connections, each its own share of them.
type workers struct {
	tables  []*flow.Table
	filling [][]item
	full    []chan []item
	free    chan []item
	scratch item
	wg      sync.WaitGroup
}

func startWorkers(n int, cfg flow.Config) *workers {
	if cfg.Connections == 0 {
		cfg.Connections = flow.MostConnections
	}
	cfg.Connections = max(cfg.Connections/max(n, 1), 1)
	if n == 0 {
		return &workers{tables: []*flow.Table{flow.NewTable(cfg)}}
	}
	w := &workers{free: make(chan []item, 8*n)}
	for range n {
		table, full := flow.NewTable(cfg), make(chan []item, 4)
		w.tables = append(w.tables, table)
		w.full = append(w.full, full)
		w.filling = append(w.filling, make([]item, 0, batch))
		w.wg.Go(func() { w.follow(table, full) })
	}
	return w
}

func (w *workers) follow(table *flow.Table, full <-chan []item) {
	for items := range full {
		for i := range items {
			add(table, &items[i])
		}
		select {
		case w.free <- items[:0]:
		default:
		}
	}
}

func add(t *flow.Table, it *item) {
	if it.kind == TooBig {
		t.TooBig(it.seg.Src, it.seg.Dst, int(it.seg.MSS))
		return
	}
	t.Add(&it.seg)
}

// next is where the next segment is decoded to: in place when there is one worker.
func (w *workers) next() *item {
	if len(w.full) != 1 {
		return &w.scratch
	}
	b := w.filling[0]
	return &b[:len(b)+1][len(b)]
}

// take hands a decoded segment to the worker that follows its connection.
func (w *workers) take(it *item) {
	if len(w.full) == 0 {
		add(w.tables[0], it)
		return
	}
	if len(w.full) == 1 {
		w.filling[0] = w.filling[0][:len(w.filling[0])+1]
		w.flushWhenFull(0)
		return
	}
	i := int(it.seg.Hash() >> 32 % uint64(len(w.tables)))
	w.filling[i] = append(w.filling[i], *it)
	w.flushWhenFull(i)
}

func (w *workers) flushWhenFull(i int) {
	if len(w.filling[i]) < batch {
		return
	}
	w.full[i] <- w.filling[i]
	select {
	case w.filling[i] = <-w.free:
	default:
		w.filling[i] = make([]item, 0, batch)
	}
}

// finish ends the workers and gives their tables.
func (w *workers) finish() []*flow.Table {
	for i := range w.full {
		w.full[i] <- w.filling[i]
		close(w.full[i])
	}
	w.wg.Wait()
	return w.tables
}
