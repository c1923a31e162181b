// Package datagram moves the datagrams of a UDP transfer at one end. It counts arrivals: loss, reordering,
// duplicates, jitter and delay variation. A sender can search the path's capacity by its receiver's feedback (RFC
// 9097). Packages with a protocol, such as iperf3, open the flows.
package datagram

import (
	"context"
	crand "crypto/rand"
	"errors"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/socket"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// Flows are one direction's UDP flows at this end. Exported fields are set before Run.
type Flows struct {
	Send bool // this end sends
	Wide bool // 64-bit sequence numbers
	Size int  // payload of a datagram, bytes
	// Bps is the payload rate of each flow, bit/s; 0: as fast as the socket accepts.
	Bps float64
	// Burst is the number of datagrams that a paced sender sends in a row; 0: each when due.
	Burst int
	// Bytes and Time end a sender, whichever comes first. Bytes counts payload over all flows. Like iperf3, each
	// flow sends whole datagrams up to its part. 0: unlimited. A receiver ends after Bytes or with its context.
	Bytes int64
	Time  time.Duration
	Omit  time.Duration // at the start, counted separately
	// Every is the time between additional calls of Run's callback, counted from the end of Omit.
	Every time.Duration
	// Search makes the sender search the path's capacity by feedback, with Bps as the maximum. It needs one flow
	// and a far end that does the same.
	Search bool
	All    []*Flow // at least one

	search  rateSearch
	moved   atomic.Int64 // payload bytes
	started time.Time
}

// Flow is one UDP flow. One goroutine moves its data. While Run runs, it owns all fields but Socket and Stray.
type Flow struct {
	Socket *socket.Flow
	// Stray receives datagrams of other hosts that arrived before connect(); nil drops them.
	Stray func(from netip.AddrPort, datagram []byte)

	Arrivals    Arrivals
	Omitted     *Arrivals     // at the end of the omitted time; nil: none or not yet
	Sent        uint64        // datagrams
	OmittedSent uint64        // datagrams, at the end of the omitted time
	First       time.Duration // first arrival since Run began
	Last        time.Duration // last arrival or send since Run began

	// SocketDrops are the datagrams that the kernel dropped at a receiver's socket, which was full. It
	// counts batches: their mean size is that of the batches that arrived. nil: not known.
	SocketDrops *int64

	batches int64
	delays  delaySample
	err     error
	tally   progress
}

// progress is a flow's moved data, for reports while it runs.
type progress struct{ bytes, packets, lost, jitter atomic.Int64 }

func (t *progress) now() transfer.FlowInterval {
	return transfer.FlowInterval{Bytes: t.bytes.Load(), Packets: t.packets.Load(), Lost: t.lost.Load(),
		Jitter: time.Duration(t.jitter.Load())}
}

// Close closes the sockets.
func (f *Flows) Close() {
	for _, one := range f.All {
		one.Socket.Close()
	}
}

// Run moves datagrams until the time or bytes are used up, or ctx ends. It calls onInterval, if not nil, with the
// moved data every 100 ms, at multiples of Every and at the end. The error is ctx's cause or a socket's.
func (f *Flows) Run(ctx context.Context, each func(transfer.Interval)) error {
	f.started = time.Now()
	stop := context.AfterFunc(ctx, func() {
		for _, one := range f.All {
			one.Socket.SetDeadline(time.Unix(1, 0))
		}
	})
	defer stop()
	var moving, reporting, searching sync.WaitGroup
	done := make(chan struct{})
	if f.Search {
		one := f.All[0]
		if f.Send {
			f.search.bps.Store(int64(f.search.load.Bps()))
			searching.Go(func() { f.search.follow(one) })
		} else {
			searching.Go(func() { f.search.sendFeedback(f, one, done) })
		}
	}
	for _, one := range f.All {
		moving.Go(func() {
			if f.Send {
				one.err = f.send(ctx, one)
			} else {
				one.err = f.receiveCounted(one)
			}
		})
	}
	reporting.Go(func() { f.report(done, each) })
	moving.Wait()
	close(done)
	reporting.Wait()
	if f.Search {
		f.All[0].Socket.SetDeadline(time.Unix(1, 0)) // follow reads until then
		searching.Wait()
	}
	var all []error
	for _, one := range f.All {
		if !errors.Is(one.err, os.ErrDeadlineExceeded) {
			all = append(all, one.err)
		}
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return errors.Join(all...)
}

// report calls onInterval with the data moved since the last call.
func (f *Flows) report(done <-chan struct{}, each func(transfer.Interval)) {
	if each == nil {
		return
	}
	cut := transfer.IntervalSchedule{Every: f.Every, Omit: f.Omit}
	var at time.Duration
	timer := time.NewTimer(reportWait(cut, at))
	defer timer.Stop()
	var bytes int64
	before := make([]transfer.FlowInterval, len(f.All))
	for over := false; !over; {
		select {
		case <-done:
			over = true
		case <-timer.C:
		}
		now := time.Since(f.started)
		moved := f.moved.Load()
		timer.Reset(reportWait(cut, now))
		flows := make([]transfer.FlowInterval, len(f.All))
		for i, one := range f.All {
			sum := one.tally.now()
			last := before[i]
			before[i] = sum
			flows[i] = transfer.FlowInterval{Bytes: sum.Bytes - last.Bytes, Packets: sum.Packets - last.Packets,
				Lost: sum.Lost - last.Lost, Jitter: sum.Jitter}
		}
		each(transfer.Interval{Start: at, End: now, Bytes: moved - bytes, Flows: flows})
		at = now
		bytes = moved
	}
}

// reportWait returns the time until the next report.
func reportWait(cut transfer.IntervalSchedule, now time.Duration) time.Duration {
	const usual = 100 * time.Millisecond
	if next := cut.Next(now); next > 0 {
		return min(usual, next-now)
	}
	return usual
}

// maxPause lets a sender notice a changed rate.
const maxPause = 50 * time.Millisecond

func (f *Flows) send(ctx context.Context, one *Flow) error {
	most := one.Socket.Batch(f.Size)
	pace := pacer{burst: int64(f.Burst)}
	if f.Bps > 0 {
		pace.perDatagram = time.Duration(float64(f.Size*8) / f.Bps * float64(time.Second))
	}
	headers := one.Headers()
	batch := make([]byte, most*f.Size)
	crand.Read(batch)
	round := int64(len(f.All)) * int64(f.Size) // one datagram per flow
	limit := (f.Bytes + round - 1) / round
	for ctx.Err() == nil {
		now := time.Since(f.started)
		if f.Search {
			each := time.Duration(float64(f.Size*8) / f.search.rate(f.Size, headers, f.Bps) * float64(time.Second))
			if each != pace.perDatagram {
				pace = pacer{perDatagram: each, begun: now}
			}
		}
		n, wait := pace.due(now, most)
		if f.Bytes > 0 {
			n = int(min(int64(n), limit-int64(one.Sent)))
		}
		switch {
		case f.Time > 0 && now >= f.Time, f.Bytes > 0 && int64(one.Sent) >= limit:
			return nil
		case wait > 0:
			pause(ctx, min(wait, maxPause))
			continue
		}
		if one.Omitted == nil && f.Omit > 0 && now >= f.Omit {
			one.Omitted = &Arrivals{}
			one.OmittedSent = one.Sent
		}
		for i := range n {
			Header{now, one.Sent + uint64(i) + 1}.Put(batch[i*f.Size:], f.Wide)
		}
		switch err := one.Socket.Send(batch[:n*f.Size], f.Size); {
		case err == nil:
			one.Sent += uint64(n)
			f.moved.Add(int64(n * f.Size))
			one.tally.bytes.Add(int64(n * f.Size))
			one.tally.packets.Store(int64(one.Sent))
			one.Last = time.Since(f.started)
		case errors.Is(err, syscall.ENOBUFS), errors.Is(err, syscall.ECONNREFUSED):
			pause(ctx, pacerTick) // the queue is full, or the far end not ready
		default:
			return err
		}
	}
	return nil
}

func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

func (f *Flows) receive(one *Flow) error {
	buffer := make([]byte, 1<<16)
	remote := one.Socket.Remote()
	for {
		n, size, from, err := one.Socket.Receive(buffer)
		switch {
		case errors.Is(err, syscall.ECONNREFUSED):
			continue
		case err != nil:
			return err
		case from != remote:
			if one.Stray != nil {
				one.Stray(from, buffer[:n])
			}
			continue
		}
		now := time.Since(f.started)
		one.batches++
		if f.Search {
			f.search.mu.Lock()
		}
		if one.Arrivals.Datagrams == 0 {
			one.First = now
		}
		if one.Omitted == nil && f.Omit > 0 && now >= f.Omit {
			before := one.Arrivals
			one.Omitted = &before
			one.Arrivals.Jitter = 0
		}
		for rest := buffer[:n]; len(rest) > 0; {
			datagram := rest[:min(size, len(rest))]
			rest = rest[len(datagram):]
			if h, ok := ReadHeader(datagram, f.Wide); ok {
				above := one.Arrivals.Add(h, len(datagram), now)
				one.delays.add(above + one.Arrivals.MinDelay)
				if f.Search {
					f.search.delays += above
					f.search.n++
				}
			}
		}
		if f.Search {
			f.search.mu.Unlock()
		}
		one.Last = now
		one.tally.bytes.Store(one.Arrivals.Bytes)
		one.tally.packets.Store(int64(min(one.Arrivals.Highest, 1<<62)))
		one.tally.lost.Store(one.Arrivals.Lost)
		one.tally.jitter.Store(int64(one.Arrivals.Jitter))
		if moved := f.moved.Add(int64(n)); f.Bytes > 0 && moved >= f.Bytes {
			for _, other := range f.All {
				other.Socket.SetDeadline(time.Unix(1, 0)) // stops receiving on all flows
			}
			return nil
		}
	}
}

// Result returns this end's measurement after Run.
func (f *Flows) Result(started time.Time, complete bool) *transfer.DatagramResult {
	r := &transfer.DatagramResult{Started: started, Complete: complete,
		Spec: transfer.DatagramSpec{Direction: transfer.Down, Bps: f.Bps * float64(len(f.All)), Size: f.Size,
			Streams: len(f.All)}}
	if f.Send {
		r.Spec.Direction = transfer.Up
	}
	var reordered, duplicates int64
	first := time.Duration(-1)
	if len(f.All) > 0 {
		r.Headers = f.All[0].Headers()
	}
	for _, one := range f.All {
		r.Flows = append(r.Flows, transfer.Addresses{Local: one.Socket.Local(), Remote: one.Socket.Remote()})
		if f.Send {
			r.Sent += int64(one.Sent)
			continue
		}
		a := &one.Arrivals
		r.Sent += int64(a.Highest)
		r.Received += a.Datagrams
		r.Lost += a.Lost
		r.Bytes += a.Bytes
		r.Jitter += a.Jitter / time.Duration(len(f.All))
		r.AddSocketDrops(one.SocketDrops)
		reordered += a.Reordered
		duplicates += a.Duplicates
		r.Duration = max(r.Duration, one.Last)
		if a.Datagrams > 0 && (first < 0 || one.First < first) {
			first = one.First
		}
	}
	if !f.Send {
		r.Variation = f.Variation()
		r.Reordered = &reordered
		r.Duplicates = &duplicates
		r.Duration -= max(first, 0)
	}
	if f.Search {
		r.Seconds = f.search.account.seconds
		r.Congested = f.search.account.congested
	}
	return r
}
