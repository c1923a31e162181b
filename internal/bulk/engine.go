// Package bulk moves the payload of a measured TCP transfer at one end, samples the kernel's counters, and measures
// the program's own writer and reader. Protocols open the connections and start the transfer.
//
// Flow of a transfer; functions occur in this order:
//
//  1. Endpoint.Run starts one loop (with a thread of its own) for each stream, and the sampler.
//  2. loop.send or loop.receive moves payload (loops.go) until time, bytes or the stream's end; account books it.
//  3. sampler.run reads TCP_INFO of all streams (sampler.go), every 5 ms at first, 40 ms later; progress reports.
//  4. loop.drain waits for the acknowledgement of the last byte; ignoreCut accepts a far end that closed in time.
//  5. Run takes the last sample, spreads run-queue waits over their time (backdate) and describes each stream.
//
// The loop writes its account, the sampler reads it: shared fields are atomic. Latest has a mutex of its own.
package bulk

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

// Endpoint is one end of a transfer over connected streams.
type Endpoint struct {
	Send    bool
	Spec    transfer.Spec
	Streams []*socket.Stream
	// Preface is the number of bytes that this end had written to each stream before.
	Preface int64
	// Each, if not nil, is called with the intervals, at least Every (0: 100 ms) apart.
	Every time.Duration
	Each  func(transfer.Interval)
	// Cut adds moments of this end's clock at which samples are taken and Each is called, also before the first byte.
	Cut transfer.IntervalSchedule
	// Latest, if not nil, gets the newest counters of a sender.
	Latest *Latest
	// Burst is the number of writes in a row of a rate-limited sender; 0: one.
	Burst int
	// KeepOpen does not close the streams when all is sent, and ends a receiver after the Spec's Bytes, for protocols
	// that signal the end elsewhere. Another receiver fails with ErrExcess if more arrive.
	KeepOpen bool
	// Stall is the longest time without progress of a transfer without a time; 0: StallTimeout.
	Stall time.Duration
}

// StallTimeout is the default time without progress after which a transfer fails.
const StallTimeout = 20 * time.Second

// drainTime is how long a sender waits for acknowledgements after its time: the receiver started half an RTT later.
const drainTime = 500 * time.Millisecond

// pieceOf returns how many bytes of a transfer one stream may claim at once: a quarter of its part, so that the slowest
// delays the end little, and at least 16 KiB.
func pieceOf(bytes int64, streams int) int {
	if streams < 2 {
		return socket.BestWrite
	}
	return int(min(max(bytes/int64(4*streams), 16<<10), socket.BestWrite))
}

// Run moves the payload and returns this end's samples and counters, with an error those until then. It ends with the
// Spec's time (from the first byte) or with ctx. The streams stay open, so that the caller decides when the far end
// sees the end; closing resets those that have not ended.
func (p Endpoint) Run(ctx context.Context) (*transfer.End, error) {
	c := clock{time.Now()}
	rule, err := senderRule(p.Send, p.own())
	if err != nil {
		return nil, err
	}
	loops := make([]*loop, len(p.Streams))
	var budget atomic.Int64
	budget.Store(p.Spec.Bytes)
	ceiling := newCeiling(p)
	for i, s := range p.Streams {
		l := &loop{account: account{clock: c, writes: p.Send}, stream: s, program: p.Spec.Program, keepOpen: p.KeepOpen,
			ceiling: ceiling, burst: max(p.Burst, 1), stall: cmp.Or(p.Stall, StallTimeout)}
		l.uncopied = socket.DropsUncopied && !p.Spec.Program.CopyReceived
		if p.Send {
			l.uncopied = p.Spec.Program.ByReference && rule == nil
		}
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
		end.Moved += l.occupied(samples.series[i], p)
		if l.err != nil {
			errs = append(errs, fmt.Errorf("data connection: %w", closed(l.err)))
		}
	}
	if ctx.Err() != nil {
		return end, context.Cause(ctx)
	}
	return end, errors.Join(errs...)
}

// run runs one data loop on a thread of its own, so that the thread's CPU time is the loop's.
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

// backdate spreads each wait for a core over the samples in which it lasted: the kernel counts it when it ends.
func backdate(samples []transfer.Sample) {
	for i := len(samples) - 2; i >= 0; i-- {
		s := &samples[i]
		next := &samples[i+1]
		s.RunqueueWait = max(s.RunqueueWait, next.RunqueueWait-(next.At-s.At))
	}
}

// release closes the thread's scheduler statistics after the last sample.
func (l *loop) release() {
	if t := l.turns.Swap(nil); t != nil {
		t.schedule.Close()
	}
}

// drain closes the sending side and waits until all data is acknowledged. A transfer with a time waits at most
// drainTime, and the far end may close first (see ignoreCut). One whose protocol ends it by a message waits for
// nothing: the receiver counts until that arrives.
func (l *loop) drain(limit time.Duration) error {
	if l.keepOpen && limit > 0 {
		return nil
	}
	if !l.keepOpen {
		if err := l.stream.CloseWrite(); err != nil {
			return err
		}
	}
	until := l.end + drainTime
	for closed := false; limit == 0 || l.clock.now() < until; {
		n, err := l.stream.Outstanding()
		// On systems that do not report it, the far end closes when it has read everything.
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

// ignoreCut returns nil for a reset near the end of the time: the other end's clock was a little ahead.
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

// progress reports the bytes that arrived at this end, all streams together.
type progress struct {
	clock   clock
	loops   []*loop
	each    func(transfer.Interval)
	latest  *Latest // counters of a sender
	samples *sampler
	early   bool          // reports before the first byte too
	begun   time.Duration // on the clock; 0: nothing arrived yet
	at      time.Duration
	bytes   int64
}

// report calls each with the payload since the last report; the final one ends at the last byte.
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
	if final && total == p.bytes {
		return
	}
	if final && last > p.at { // else the report before missed the last bytes, though it was made after them
		now = last
	}
	p.each(transfer.Interval{Start: p.at - p.begun, End: now - p.begun, Bytes: total - p.bytes, Sender: p.latest.Get(),
		Samples: p.samples.last()})
	p.at = now
	p.bytes = total
}
