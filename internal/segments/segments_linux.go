package segments

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/cilium/ebpf"

	"github.com/fullpipe-net/fullpipe/internal/bpf"
	"github.com/fullpipe-net/fullpipe/internal/socket"
)

const (
	ringBytes  = 4 << 20 // 35,000 segments
	maxSockets = 16_384  // in the map of bulk transfers
)

// Watch follows all connections of this host until it is closed. Its methods may be called by several goroutines.
type Watch struct {
	set     bpf.Set
	events  *bpf.Events
	mask    *ebpf.Map
	flushed chan struct{} // a value for each answered Flush
	ended   chan struct{} // closed when reading has ended

	mu     sync.Mutex // guards what follows
	all    connections
	missed uint64 // at the last Take
	one    segment
	failed error
	pace   pace
}

// Open attaches the programs. The error is *bpf.NotPermittedError without the privilege, and socket.ErrNotSupported
// where the kernel lacks a tracepoint.
func Open() (*Watch, error) {
	if err := bpf.CheckTracing(); err != nil {
		return nil, err
	}
	w := &Watch{all: newConnections(), flushed: make(chan struct{}, 1),
		ended: make(chan struct{})}
	if err := w.attach(); err != nil {
		_ = w.set.Close() // err says more
		if errors.Is(err, os.ErrPermission) {
			err = &bpf.NotPermittedError{Err: err}
		}
		return nil, err
	}
	go func() {
		defer close(w.ended)
		err := w.events.Each(w.take, func() {
			select {
			case w.flushed <- struct{}{}:
			default: // nobody waits any more
			}
		})
		w.mu.Lock()
		defer w.mu.Unlock()
		w.failed = err
	}()
	return w, nil
}

func (w *Watch) attach() error {
	kernel, err := bpf.KernelLayout()
	if err != nil {
		return fmt.Errorf("segments by eBPF need the kernel's BTF: %w: %w", socket.ErrNotSupported, err)
	}
	if kernel.TracepointArguments("tcp_probe") < 2 || kernel.TracepointArguments("net_dev_queue") < 1 || isBigEndian() {
		return fmt.Errorf("segments by eBPF: tracepoints: %w", socket.ErrNotSupported)
	}
	bulk, err := w.set.Map(ebpf.MapSpec{Name: "bulk", Type: ebpf.LRUHash, KeySize: 8, ValueSize: bulkSize,
		MaxEntries: maxSockets})
	if err != nil {
		return err
	}
	w.mask, err = w.set.Map(ebpf.MapSpec{Name: "mask", Type: ebpf.Array, KeySize: 4, ValueSize: 4, MaxEntries: 1})
	if err != nil {
		return err
	}
	w.events, err = w.set.Events(ringBytes)
	if err != nil {
		return err
	}
	of := maps{bulk: bulk.FD(), mask: w.mask.FD()}
	arrives := arrival(kernel.At, w.events, of)
	leaves := departure(kernel.At, w.events, of)
	if err := kernel.Err(); err != nil {
		return fmt.Errorf("segments by eBPF: %w: %w", socket.ErrNotSupported, err)
	}
	if err := w.set.AttachTracepoint(bpf.Arrivals, "tcp_probe", arrives); err != nil {
		return err
	}
	return w.set.AttachTracepoint(bpf.Departures, "net_dev_queue", leaves)
}

// isBigEndian reports whether the kernel's bit fields begin with the highest bit.
func isBigEndian() bool { return binary.NativeEndian.Uint16([]byte{0, 1}) == 1 }

// Close detaches the programs. It may be called again, and of a nil Watch.
func (w *Watch) Close() error {
	if w == nil {
		return nil
	}
	err := w.set.Close()
	<-w.ended
	return err
}

func (w *Watch) take(b []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if decode(b, &w.one) {
		w.all.add(&w.one)
		if w.pace.tooFast(w.one.at) {
			w.failed = errors.Join(w.failed, w.mask.Put(uint32(0), w.pace.mask))
		}
	}
}

// flushTimeout bounds the wait for the reader. It only waits for records that exist.
const flushTimeout = time.Second

// Take returns the turns since the last call.
func (w *Watch) Take() (t Turns, err error) {
	if err := w.flush(); err != nil {
		return t, err
	}
	lost, err := w.events.Lost()
	if err != nil {
		return t, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	t = Turns{Missed: int64(lost-w.missed) + w.all.forgotten, OneOf: int64(w.pace.mask) + 1}
	w.missed = lost
	w.all.forgotten = 0
	t.Of = w.all.take()
	return t, w.failed
}

func (w *Watch) flush() error {
	select {
	case <-w.flushed: // of a call that gave up
	default:
	}
	if err := w.events.Flush(); err != nil {
		return err
	}
	select {
	case <-w.flushed:
		return nil
	case <-w.ended:
		return os.ErrClosed
	case <-time.After(flushTimeout):
		return errors.New("the kernel's records of segments were not read in time")
	}
}
