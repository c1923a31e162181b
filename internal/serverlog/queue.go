package serverlog

import (
	"io"
	"sync"
	"sync/atomic"
	"time"
)

// lineQueue writes lines in order and never blocks its callers. Lines that do not fit are dropped and counted.
type lineQueue struct {
	lines      chan []byte
	bytes      atomic.Int64 // in lines
	lost       atomic.Int64
	formatLost func(lost int64) []byte // returns the line that reports lost lines
	over       chan struct{}           // closed by close
	written    chan struct{}           // closed when all lines are written
	once       sync.Once
}

// Limits of the queue.
const (
	maxLines = 1024
	maxBytes = 8 << 20
)

func newLineQueue(out io.Writer, lost func(int64) []byte) *lineQueue {
	q := &lineQueue{formatLost: lost, lines: make(chan []byte, maxLines), over: make(chan struct{}),
		written: make(chan struct{})}
	go func() {
		defer close(q.written)
		for {
			select {
			case line := <-q.lines:
				q.write(out, line)
			case <-q.over:
				for {
					select {
					case line := <-q.lines:
						q.write(out, line)
					default:
						return
					}
				}
			}
		}
	}()
	return q
}

// write writes a line. A failed line is dropped.
func (q *lineQueue) write(out io.Writer, line []byte) {
	if n := q.lost.Swap(0); n > 0 {
		out.Write(q.formatLost(n))
	}
	out.Write(line)
	q.bytes.Add(-int64(len(line)))
}

func (q *lineQueue) put(line []byte) {
	if q.bytes.Add(int64(len(line))) <= maxBytes {
		select {
		case q.lines <- line:
			return
		default:
		}
	}
	q.bytes.Add(-int64(len(line)))
	q.lost.Add(1)
}

// close waits for all lines, with a timeout.
func (q *lineQueue) close(within time.Duration) {
	q.once.Do(func() { close(q.over) })
	late := time.NewTimer(within)
	defer late.Stop()
	select {
	case <-q.written:
	case <-late.C:
	}
}
