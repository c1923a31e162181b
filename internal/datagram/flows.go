// Package datagram moves the datagrams of a measured UDP transfer at one end, counts what
// arrives of them (loss, reordering, duplicates, jitter, the variation of delay), and lets a
// sender search the path's capacity by its receiver's feedback (RFC 9097). Protocols open the
// flows and say when a transfer begins and what it is; they are elsewhere.
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

// Flows is one direction's UDP flows at this end. What is exported is set before Run.
type Flows struct {
	Send bool // this end sends
	Wide bool // sequence numbers of 64 bits
	Size int  // payload of a datagram, bytes
	// Bps is the payload's rate on each flow, in bit/s; 0 is as fast as the socket takes it.
	Bps float64
	// Burst is how many datagrams a sender sends in a row where it is held to a rate; 0: as they
	// are due.
	Burst int
	// Bytes and Time end a sender, whichever comes first; Bytes counts payload over all
	// flows, of which each sends as many whole datagrams as it takes to reach its part, as
	// iperf3's do. 0 is no bound. A receiver ends when Bytes have come, and with its context.
	Bytes int64
	Time  time.Duration
	Omit  time.Duration // at the start, counted apart
	// Every has Run's each told at its multiples besides, counted again from Omit's end.
	Every time.Duration
	// Search has the sender search the path's capacity by the receiver's feedback, with Bps
	// as its bound; it takes one flow, whose far end does so too.
	Search bool
	All    []*Flow // at least one

	search  rateSearch
	moved   atomic.Int64 // payload bytes
	started time.Time
}

// Flow is one UDP flow. One goroutine moves its data: while Run lasts it owns what is not
// set before, Socket and Stray.
type Flow struct {
	Socket *socket.Flow
	// Stray takes what came from others before Socket was connected; nil drops it.
	Stray func(from netip.AddrPort, datagram []byte)

	Arrivals    Arrivals
	Omitted     *Arrivals     // as it was when the omitted time ended; nil: not yet, or none
	Sent        uint64        // datagrams
	OmittedSent uint64        // datagrams, when the omitted time ended
	First       time.Duration // the first arrival's time since Run began
	Last        time.Duration // the last arrival's or sending's time since Run began

	delays delaySample
	err    error
	tally  tally
}

// tally is what a flow has moved so far, for who reports while it runs.
type tally struct{ bytes, packets, lost, jitter atomic.Int64 }

func (t *tally) now() transfer.FlowInterval {
	return transfer.FlowInterval{Bytes: t.bytes.Load(), Packets: t.packets.Load(), Lost: t.lost.Load(),
		Jitter: time.Duration(t.jitter.Load())}
}

// Close releases the sockets.
func (f *Flows) Close() {
	for _, one := range f.All {
		one.Socket.Close()
	}
}

// Run moves datagrams until the time or the bytes are used up, or ctx ends, and calls each
// (when not nil) every 100 ms, at Every's multiples and at the end, with what moved. The error
// is ctx's cause, or what a socket answered.
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
				one.err = f.receive(one)
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

// report calls each with what moved since the last time.
func (f *Flows) report(done <-chan struct{}, each func(transfer.Interval)) {
	if each == nil {
		return
	}
	cut := transfer.Cut{Every: f.Every, Omit: f.Omit}
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

// reportWait is how long after a moment the next report is due.
func reportWait(cut transfer.Cut, now time.Duration) time.Duration {
	const usual = 100 * time.Millisecond
	if next := cut.Next(now); next > 0 {
		return min(usual, next-now)
	}
	return usual
}

// longestPause lets a sender see that its rate has changed.
const longestPause = 50 * time.Millisecond

func (f *Flows) send(ctx context.Context, one *Flow) error {
	most := one.Socket.Batch(f.Size)
	pace := pacer{burst: int64(f.Burst)}
	if f.Bps > 0 {
		pace.perDatagram = time.Duration(float64(f.Size*8) / f.Bps * float64(time.Second))
	}
	headers := one.Headers()
	batch := make([]byte, most*f.Size)
	crand.Read(batch)
	round := int64(len(f.All)) * int64(f.Size) // one datagram of each flow
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
			pause(ctx, min(wait, longestPause))
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
			pause(ctx, tick) // the way out is full, or the far end not there yet
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
				one.delays.add(above + one.Arrivals.LeastDelay)
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
				other.Socket.SetDeadline(time.Unix(1, 0)) // all flows' receiving ends
			}
			return nil
		}
	}
}

// Result is what this end knows of the flows, after Run.
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
