// Package engine moves the payload of a measured TCP transfer at one end, samples what the
// kernel tells of it, and keeps the account of our own writer and reader. Protocols open the
// connections and say when a transfer begins and what it is; they are elsewhere.
package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/socket"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// Endpoint is one end of a transfer over streams that are connected already.
type Endpoint struct {
	Send    bool
	Spec    transfer.Spec
	Streams []*socket.Stream
	// Preface is how many bytes this end had written to each stream before.
	Preface int64
	// Each, when not nil, is told what moved, at least Every (0: 100 ms) apart.
	Every time.Duration
	Each  func(transfer.Interval)
	// Cut says at which moments of this end's clock samples are taken and Each is told
	// besides, also before anything has moved.
	Cut transfer.IntervalSchedule
	// Latest, when not nil, is kept up to date where this end sends.
	Latest *Latest
	// Burst is how many writes a sender that is held to a rate makes in a row; 0: one.
	Burst int
	// KeepOpen leaves the streams without an end when all is sent, and makes the Spec's
	// Bytes bound a receiver too: in other protocols the end is said elsewhere.
	KeepOpen bool
	// Stall is how long a transfer without a time may stand still; 0: StallTime.
	Stall time.Duration
}

// StallTime is how long nobody's transfer stands still without being given up.
const StallTime = 20 * time.Second

// drainTime is how long a sender whose time is up waits for acknowledgements: the
// receiver's time began half a round trip later.
const drainTime = 500 * time.Millisecond

// pieceOf is how many bytes of a transfer one of several streams may claim at once: a
// quarter of its part, so that the slowest holds little back, and no less than 16 KiB.
func pieceOf(bytes int64, streams int) int {
	if streams < 2 {
		return socket.BestWrite
	}
	return int(min(max(bytes/int64(4*streams), 16<<10), socket.BestWrite))
}

// Run moves the payload and answers what this end saw, which with an error is what
// it saw until then. It ends within the Spec's time (from the first byte on), or when
// ctx does. The streams stay open, so that the caller chooses when the far end learns;
// closing resets those that are not over.
func (p Endpoint) Run(ctx context.Context) (*transfer.End, error) {
	c := clock{time.Now()}
	rule, err := senderRule(p.Send, p.own())
	if err != nil {
		return nil, err
	}
	loops := make([]*loop, len(p.Streams))
	var budget atomic.Int64
	budget.Store(p.Spec.Bytes)
	for i, s := range p.Streams {
		l := &loop{account: account{clock: c, writes: p.Send}, stream: s, program: p.Spec.Program, keepOpen: p.KeepOpen,
			burst: max(p.Burst, 1), stall: cmp.Or(p.Stall, StallTime)}
		if p.Send {
			l.end = p.Spec.Time
			l.rule = rule
		}
		if p.Spec.Bytes > 0 && (p.Send || p.KeepOpen) {
			l.piece = pieceOf(p.Spec.Bytes, len(p.Streams))
			l.budget = &budget
		}
		if rule != nil {
			s.SetNoDelay(true)
		}
		loops[i] = l
	}
	usage := startUsage()
	interrupted := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(interrupted)
		for _, l := range loops {
			l.stream.Interrupt()
		}
	})
	defer func() {
		if !stop() { // it has begun: the streams may be closed when it is done
			<-interrupted
		}
	}()

	if p.Latest == nil {
		p.Latest = &Latest{}
	}
	samples := newSampler(c, loops, p.Send, p.Latest)
	samples.read()
	progress := progress{loops: loops, each: p.Each, clock: c, latest: p.Latest, samples: samples,
		early: p.Cut != transfer.IntervalSchedule{}}
	if p.Every == 0 {
		p.Every = 100 * time.Millisecond
	}
	moving := sync.WaitGroup{}
	sampling := sync.WaitGroup{}
	done := make(chan struct{})
	for _, l := range loops {
		moving.Go(func() { l.run(p.Send, p.Spec.Time) })
	}
	wall := wallClock{start: c.start}
	sampling.Go(func() {
		samples.run(done, p.Every, p.Cut, func() {
			progress.report(false)
			wall.look()
		})
	})
	moving.Wait()
	close(done)
	sampling.Wait()
	samples.read()
	for _, l := range loops {
		l.release()
	}
	progress.report(true)
	wall.look()

	end := &transfer.End{Kernel: socket.Kernel(), Streams: make([]transfer.Stream, len(loops)), CPU: usage.stop(c, loops),
		MemoryPressure: readPressure().since(usage.memory, c.now()), ClockStep: wall.most}
	if rule != nil {
		end.BufferRule = "afd:" + strconv.Itoa(rule.Quota)
	}
	var errs []error
	for i, l := range loops {
		if !l.clean && !p.KeepOpen {
			l.stream.Reset()
		}
		backdate(samples.series[i])
		end.Streams[i] = l.describe(samples.series[i], p)
		if l.err != nil {
			errs = append(errs, fmt.Errorf("data connection: %w", closed(l.err)))
		}
	}
	if ctx.Err() != nil {
		return end, context.Cause(ctx)
	}
	return end, errors.Join(errs...)
}

// run is the whole life of one data loop. It has a thread of its own, so that the
// thread's CPU time is the loop's.
func (l *loop) run(send bool, limit time.Duration) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	before, _ := socket.ThreadCPU()
	if t, err := openTurns(l.clock.now()); err == nil {
		l.turns.Store(t)
	}
	if send {
		l.err = l.send()
		if l.over() { // it was writing, or waiting to write, until now
			l.last.Store(int64(l.clock.now()))
		}
		if l.err == nil {
			l.err = l.drain(limit)
		}
		l.err = l.ignoreCut(l.err, limit)
	} else {
		l.err = l.receive(limit)
		l.err = l.ignoreCut(l.err, limit)
	}
	if errors.Is(l.err, socket.ErrInterrupted) {
		l.err = nil
	}
	after, _ := socket.ThreadCPU()
	l.cpu = after - before
}

// backdate spreads the time without a core over when it was: the kernel books a wait when
// it is over.
func backdate(samples []transfer.Sample) {
	for i := len(samples) - 2; i >= 0; i-- {
		s := &samples[i]
		next := &samples[i+1]
		s.RunqueueWait = max(s.RunqueueWait, next.RunqueueWait-(next.At-s.At))
	}
}

// release lets go of the thread's turns, when nobody samples any more.
func (l *loop) release() {
	if t := l.turns.Swap(nil); t != nil {
		t.schedule.Close()
	}
}

// drain ends what this side sends and waits until all of it is acknowledged. With a
// time set that is bounded, and the far end may cut it short (see ignoreCut).
func (l *loop) drain(limit time.Duration) error {
	if !l.keepOpen {
		if err := l.stream.CloseWrite(); err != nil {
			return err
		}
	}
	until := l.end + drainTime
	for closed := false; limit == 0 || l.clock.now() < until; {
		n, err := l.stream.Outstanding()
		// Where the system does not tell, the far end closes when it has read all.
		known := err == nil
		l.clean = known && n == 0 || !known && closed
		if l.clean {
			return nil
		}
		if !known && l.keepOpen {
			return nil
		}
		if closed {
			return syscall.ECONNRESET
		}
		if l.stalled(n) {
			return ErrStalled
		}
		if closed, err = l.stream.WaitClosed(2 * time.Millisecond); err != nil {
			return err
		}
	}
	return nil
}

// ignoreCut takes the connection's end for what it is when the time is about up: the
// other end's clock ran a little ahead.
func (l *loop) ignoreCut(err error, limit time.Duration) error {
	if isReset(err) && limit > 0 && l.clock.now() >= limit-drainTime {
		return nil
	}
	return err
}

func (l *loop) describe(samples []transfer.Sample, p Endpoint) transfer.Stream {
	d := l.stream.Describe()
	d.Samples = samples
	d.First = time.Duration(l.first.Load())
	d.Last = time.Duration(l.last.Load())
	d.Bytes = l.bytes.Load()
	if !p.Send {
		d.FirstReadBytes = l.opening
	}
	for _, s := range samples {
		if s.Have&transfer.HaveReceiveWnd != 0 {
			d.ReceiveBuffer.Effective = max(d.ReceiveBuffer.Effective, int(s.ReceiveWnd))
		}
		if p.Send && s.Have&transfer.HaveInFlight != 0 {
			d.SendBuffer.Effective = max(d.SendBuffer.Effective, int(s.InFlight))
		}
	}
	if l.rule != nil {
		d.SendBuffer.Requested = p.own().SendBuffer
		d.SendBuffer.Granted = l.rule.Quota
		d.SendBuffer.AutomaticMax = 0
	}
	if n := len(samples); p.Send && n > 0 && samples[n-1].Have&transfer.HaveAcked != 0 {
		d.Bytes = min(d.Bytes, max(samples[n-1].Acked-p.Preface, 0))
	}
	return d
}

// progress reports what arrived at this end, all streams together.
type progress struct {
	clock clock
	loops []*loop
	each  func(transfer.Interval)
	// latest is how this end stands, if it sends.
	latest  *Latest
	samples *sampler
	early   bool          // tells before anything has moved, too
	begun   time.Duration // on the clock; 0: nothing arrived yet
	at      time.Duration
	bytes   int64
}

// report calls each with what came since the last report; the final one ends at the
// last byte.
func (p *progress) report(final bool) {
	if p.each == nil {
		return
	}
	var total int64
	var first, last time.Duration
	for _, l := range p.loops {
		total += l.bytes.Load()
		if f := time.Duration(l.first.Load()); f > 0 && (first == 0 || f < first) {
			first = f
		}
		last = max(last, time.Duration(l.last.Load()))
	}
	if first == 0 {
		if p.early {
			p.each(transfer.Interval{Samples: p.samples.last()})
		}
		return
	}
	if p.begun == 0 {
		p.begun = first
		p.at = first
	}
	now := p.clock.now()
	if final {
		now = max(last, p.at)
		if total == p.bytes {
			return
		}
	}
	p.each(transfer.Interval{Start: p.at - p.begun, End: now - p.begun, Bytes: total - p.bytes, Sender: p.latest.Get(),
		Samples: p.samples.last()})
	p.at = now
	p.bytes = total
}
