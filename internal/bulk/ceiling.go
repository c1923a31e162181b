package bulk

import (
	"errors"
	"sync/atomic"

	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// ErrExcess reports a sender that sends more than was asked for.
var ErrExcess = errors.New("the far end sent more than the transfer's bytes")

// ceiling bounds the payload that all streams of a receiver take together. A stream claims bytes before it reads, so
// that streams that read at the same time do not pass the bound.
type ceiling struct {
	streams int64
	left    atomic.Int64 // that no stream has claimed
	unread  atomic.Int64 // that no stream has read
}

// newCeiling returns nil for senders and for transfers without a number of bytes.
func newCeiling(p Endpoint) *ceiling {
	if p.Send || p.KeepOpen || p.Spec.Bytes <= 0 {
		return nil
	}
	c := &ceiling{streams: int64(len(p.Streams))}
	c.left.Store(p.Spec.Bytes)
	c.unread.Store(p.Spec.Bytes)
	return c
}

// claim returns how many of n bytes a stream may read now, and whether all have been read. A stream leaves the others
// their part. It returns 0 while others read all that is left.
func (c *ceiling) claim(n int) (claimed int, used bool) {
	for {
		left := c.left.Load()
		if left <= 0 {
			return 0, c.unread.Load() <= 0
		}
		part := min(int64(n), (left+c.streams-1)/c.streams)
		if c.left.CompareAndSwap(left, left-part) {
			return int(part), false
		}
	}
}

// settle counts the bytes that were read, and returns the rest of a claim.
func (c *ceiling) settle(claimed, read int) {
	c.unread.Add(-int64(read))
	c.left.Add(int64(claimed - read))
}

// takeWithin reads at most n bytes within the ceiling. When all bytes are read it looks for one more, which ends the
// transfer with ErrExcess.
func (l *loop) takeWithin(n int) (int, error) {
	if l.ceiling == nil {
		return l.get(n)
	}
	claimed, used := l.ceiling.claim(n)
	switch {
	case used:
		more, err := l.get(1)
		if more > 0 {
			err = ErrExcess
		}
		return more, err
	case claimed == 0:
		return 0, nil
	}
	read, err := l.get(claimed)
	l.ceiling.settle(claimed, max(read, 0))
	return read, err
}

// occupied returns the payload with which a stream occupied the path: at a sender what was written, or more where
// retransmissions make it more; at a receiver what arrived, also what the program has not read.
func (l *loop) occupied(samples []transfer.Sample, p Endpoint) int64 {
	bytes := l.bytes.Load()
	if len(samples) == 0 {
		return bytes
	}
	switch last := &samples[len(samples)-1]; {
	case p.Send && last.Have&transfer.HaveAcked != 0:
		return max(bytes, last.Sent-p.Preface)
	case !p.Send && last.Have&transfer.HaveQueue != 0:
		return bytes + last.Queued
	}
	return bytes
}
