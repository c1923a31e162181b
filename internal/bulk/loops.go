package bulk

import (
	"errors"
	"io"
	"sync/atomic"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/model"
	"github.com/fullpipe-net/fullpipe/internal/socket"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// Sizes in bytes that a program works with when it was given none.
const (
	bestRead        = 4 << 20
	exchangeRequest = 200
	ruleWrite       = 8192
)

// poll bounds every wait in the kernel, so that a loop sees its time is up.
const poll = 100 * time.Millisecond

// loop moves one stream's payload in one direction.
type loop struct {
	account
	stream   *socket.Stream
	program  transfer.Program
	end      time.Duration // on the clock; 0: no time set
	budget   *atomic.Int64 // bytes that all streams may still write, or read; nil: no bound
	ceiling  *ceiling      // of the bytes that all streams may read; nil: no bound
	piece    int           // bytes of the budget that one write may claim
	burst    int           // writes between two pauses of a rate-limited sender
	keepOpen bool
	stall    time.Duration // how long no progress is waited for
	rule     *model.AFD    // the sender's own buffering rule; nil: the kernel's
	uncopied bool          // payload is passed by reference, or dropped unread

	clean bool          // the stream ended with nothing left in it
	sign  int           // of progress; see stalled
	since time.Duration // on the clock: when sign last changed
	cpu   time.Duration // of the loop's thread
	err   error
}

// left is the time until the loop's end, at most poll.
func (l *loop) left() time.Duration {
	if l.end == 0 {
		return poll
	}
	return min(l.end-l.clock.now(), poll)
}

func (l *loop) over() bool { return l.end > 0 && l.clock.now() >= l.end }

// stalled says whether a sign of progress has not changed for its stall time while nothing
// else ends the loop.
func (l *loop) stalled(sign int) bool {
	now := l.clock.now()
	if sign != l.sign {
		l.sign = sign
		l.since = now
	}
	return l.end == 0 && now-l.since > l.stall
}

// send writes until time or bytes are used up.
func (l *loop) send() error {
	size := l.writeSize()
	pace := pacer{bps: l.program.WriteBps, loop: l}
	for writes, bytes := 1, 0; !l.over(); writes++ {
		n := l.take(size)
		if n == 0 {
			return nil
		}
		pieces := [2]int{n, 0}
		if l.program.RequestResponse {
			pieces = [2]int{(n + 1) / 2, n / 2}
		}
		for _, piece := range pieces {
			if err := l.write(piece); err != nil {
				return err
			}
		}
		if l.program.RequestResponse && !l.over() {
			if err := l.awaitAnswer(); err != nil {
				return err
			}
		}
		bytes += n
		if writes < l.burst {
			continue
		}
		if err := pace.pause(bytes); err != nil {
			return err
		}
		writes = 0
		bytes = 0
	}
	return nil
}

func (l *loop) writeSize() int {
	switch {
	case l.program.WriteBytes > 0:
		return l.program.WriteBytes
	case l.program.RequestResponse:
		return exchangeRequest
	case l.program.WriteBps > 0: // fifty writes a second
		return int(min(max(l.program.WriteBps/8/50, 1024), 64<<10))
	case l.rule != nil:
		return ruleWrite
	}
	return socket.BestWrite
}

// take claims up to n bytes of the budget of all streams, but leaves the other streams their part.
func (l *loop) take(n int) int {
	if l.budget == nil {
		return n
	}
	n = min(n, l.piece)
	left := l.budget.Add(-int64(n))
	return int(max(int64(n)+min(left, 0), 0))
}

// write is a blocking write of n bytes.
func (l *loop) write(n int) error {
	for n > 0 && !l.over() {
		room, err := l.admit(n)
		if err != nil || room == 0 {
			return err
		}
		wrote, err := l.put(room)
		if err != nil {
			return err
		}
		l.moved(wrote)
		n -= wrote
		if wrote > 0 {
			continue
		}
		if outstanding, err := l.stream.Outstanding(); err == nil && l.stalled(outstanding) {
			return ErrStalled
		}
		if err := l.wait(blocked, l.stream.WaitWrite, l.left()); err != nil {
			return err
		}
	}
	return nil
}

// put passes at most n bytes to the kernel, without copying them if it may and the system can.
func (l *loop) put(n int) (int, error) {
	if l.uncopied {
		wrote, err := l.stream.Splice(n)
		if !errors.Is(err, socket.ErrNotSupported) {
			return wrote, err
		}
		l.uncopied = false
	}
	return l.stream.Write(n)
}

// get takes at most n bytes out of the socket.
func (l *loop) get(n int) (int, error) {
	if l.uncopied {
		return l.stream.Discard(n)
	}
	return l.stream.Read(n)
}

// rulePollInterval is the interval at which a sender with its own buffering rule reads the acknowledged bytes. The
// kernel has no event for them.
const rulePollInterval = 100 * time.Microsecond

// admit waits until the sender's own buffering rule has room, and returns how many of n bytes it accepts.
func (l *loop) admit(n int) (int, error) {
	if l.rule == nil {
		return n, nil
	}
	for {
		outstanding, err := l.stream.Outstanding()
		if err != nil {
			return 0, err
		}
		if room := l.rule.Outstanding(l.writeSize()) - outstanding; room > 0 || l.over() {
			return max(min(n, room), 0), nil
		}
		if err := l.wait(blocked, l.stream.Sleep, rulePollInterval); err != nil {
			return 0, err
		}
	}
}

func (l *loop) awaitAnswer() error {
	for !l.over() {
		switch n, err := l.stream.Discard(1); {
		case err == io.EOF:
			return errClosedEarly
		case err != nil:
			return err
		case n > 0:
			return nil
		}
		if err := l.wait(awaiting, l.stream.WaitRead, l.left()); err != nil {
			return err
		}
	}
	return nil
}

var errClosedEarly = errors.New("the far end closed the connection before the transfer was over")

// receive reads until the end of the stream, or for the transfer's time from the first byte on: the data that is then
// left in the sender's buffers adds nothing to the measurement.
func (l *loop) receive(limit time.Duration) error {
	size := bestRead
	request := l.program.WriteBytes
	if l.program.ReadBps > 0 {
		size = int(min(max(l.program.ReadBps/8/100, 1), 256<<10))
	}
	if request == 0 {
		request = exchangeRequest
	}
	pace := pacer{bps: l.program.ReadBps, loop: l}
	batches := batches{}
	if l.uncopied && l.program.ReadBps == 0 && !l.program.RequestResponse {
		batches.set = l.stream.Batch
	}
	waited := false
	for unanswered := 0; !l.over() && (l.budget == nil || l.budget.Load() > 0); {
		n, err := l.takeWithin(size)
		l.moved(n)
		if l.budget != nil {
			l.budget.Add(-int64(n))
		}
		if n > 0 && l.end == 0 && limit > 0 {
			l.end = l.clock.now() + limit
		}
		switch {
		case err == io.EOF:
			l.clean = true
			return nil
		case err != nil:
			return err
		case n == 0 && l.stalled(int(l.bytes.Load())):
			return ErrStalled
		case n == 0:
			if err := l.wait(blocked, l.stream.WaitRead, batches.timeout(l.left())); err != nil {
				return err
			}
			waited = true
			continue
		}
		batches.took(n, waited, l.clock.now())
		waited = false
		if err := pace.pause(n); err != nil {
			return err
		}
		for unanswered += n; l.program.RequestResponse && unanswered >= request; unanswered -= request {
			if err := l.answer(); err != nil {
				return err
			}
		}
	}
	return nil
}

// answer writes the one byte that a request is answered with.
func (l *loop) answer() error {
	for !l.over() {
		if n, err := l.stream.Write(1); n > 0 || err != nil {
			return err
		}
		if err := l.wait(blocked, l.stream.WaitWrite, l.left()); err != nil {
			return err
		}
	}
	return nil
}

// pacer limits a program to a rate. It does not catch up after a delay.
type pacer struct {
	bps  float64
	due  time.Duration
	loop *loop
}

func (p *pacer) pause(bytes int) error {
	if p.bps <= 0 {
		return nil
	}
	cost := time.Duration(float64(bytes) * 8 / p.bps * float64(time.Second))
	p.due = max(p.due, p.loop.clock.now()-2*cost) + cost
	for !p.loop.over() {
		left := p.due - p.loop.clock.now()
		if left <= 0 {
			break
		}
		if err := p.loop.wait(paused, p.loop.stream.Sleep, min(left, p.loop.left())); err != nil {
			return err
		}
	}
	return nil
}
