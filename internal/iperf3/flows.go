package iperf3

import (
	"context"
	crand "crypto/rand"
	"errors"
	"math/rand/v2"
	"net/netip"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/socket"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// flows is one direction's UDP streams at this end.
type flows struct {
	sending bool
	wide    bool // counters of 64 bits
	size    int  // bytes of a datagram
	bps     float64
	bytes   int64 // to send, over all flows; 0: no bound
	time    time.Duration
	omit    time.Duration
	all     []*flow
	search  *searching   // nil: the rate is fixed
	moved   atomic.Int64 // payload bytes
	started time.Time
}

// flow is one UDP stream. One goroutine moves its data and owns what is below socket.
type flow struct {
	socket   *socket.Flow
	arrivals Arrivals
	delays   delays
	sent     uint64
	omitted  *Arrivals // as it was when the omitted time ended; nil: not yet, or none
	skipped  uint64    // sent by then
	first    time.Duration
	last     time.Duration
	err      error
	// stray takes what came from others before the socket was connected; nil drops it.
	stray func(from netip.AddrPort, datagram []byte)
}

func (f *flows) sends() bool { return f.sending }

func (f *flows) close() {
	for _, one := range f.all {
		one.socket.Close()
	}
}

// run moves datagrams until the time or the bytes are used up, or ctx ends.
func (f *flows) run(ctx context.Context, each func(transfer.Interval)) error {
	f.started = time.Now()
	stop := context.AfterFunc(ctx, func() {
		for _, one := range f.all {
			one.socket.SetDeadline(time.Unix(1, 0))
		}
	})
	defer stop()
	var moving, reporting sync.WaitGroup
	done := make(chan struct{})
	var searching sync.WaitGroup
	if f.search != nil {
		one := f.all[0]
		if f.sending {
			f.search.bps.Store(int64(f.search.load.Bps()))
			searching.Go(func() { f.search.heed(one) })
		} else {
			searching.Go(func() { f.search.tell(f, one, done) })
		}
	}
	for _, one := range f.all {
		moving.Go(func() {
			if f.sending {
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
	if f.search != nil {
		f.all[0].socket.SetDeadline(time.Unix(1, 0)) // heed reads until then
		searching.Wait()
	}
	var all []error
	for _, one := range f.all {
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
func (f *flows) report(done <-chan struct{}, each func(transfer.Interval)) {
	if each == nil {
		return
	}
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	var at time.Duration
	var bytes int64
	for {
		select {
		case <-done:
			return
		case <-tick.C:
			now, moved := time.Since(f.started), f.moved.Load()
			each(transfer.Interval{Start: at, End: now, Bytes: moved - bytes})
			at, bytes = now, moved
		}
	}
}

// pacer says how many datagrams are due.
type pacer struct {
	perDatagram time.Duration // 0: no rate is set
	begun       time.Duration // from when on due is counted, less what was given up
	sent        int64
	tick        time.Duration // when the current tick began
	left        int64         // what may still be sent in it
}

const (
	// tick is about how often a timer can wake a sender up.
	tick = time.Millisecond
	// debt is how much a sender that was held up makes up for, at twice its rate at most:
	// all at once would overflow a queue.
	debt = 100 * time.Millisecond
)

// longestPause lets a sender see that its rate has changed.
const longestPause = 50 * time.Millisecond

// due is how many datagrams may be sent now, and when none may, how long to wait.
func (p *pacer) due(now time.Duration, most int) (n int, wait time.Duration) {
	if p.perDatagram == 0 {
		return most, 0
	}
	p.begun = max(p.begun, now-time.Duration(p.sent)*p.perDatagram-debt)
	owed := int64((now-p.begun)/p.perDatagram) + 1 - p.sent
	if owed <= 0 {
		return 0, p.begun + time.Duration(p.sent)*p.perDatagram - now
	}
	if p.sent == 0 || now-p.tick >= tick {
		p.tick, p.left = now, 2*int64(tick/p.perDatagram)+2
	}
	if p.left == 0 {
		return 0, p.tick + tick - now
	}
	n = int(min(owed, p.left, int64(most)))
	p.sent += int64(n)
	p.left -= int64(n)
	return n, 0
}

func (f *flows) send(ctx context.Context, one *flow) error {
	most := one.socket.Train(f.size)
	pace := pacer{}
	if f.bps > 0 {
		pace.perDatagram = time.Duration(float64(f.size*8) / f.bps * float64(time.Second))
	}
	headers := one.headers()
	train := make([]byte, most*f.size)
	crand.Read(train)
	limit := f.bytes / int64(len(f.all)) / int64(f.size)
	for ctx.Err() == nil {
		now := time.Since(f.started)
		if f.search != nil {
			each := time.Duration(float64(f.size*8) / f.search.rate(f.size, headers, f.bps) * float64(time.Second))
			if each != pace.perDatagram {
				pace = pacer{perDatagram: each, begun: now}
			}
		}
		n, wait := pace.due(now, most)
		if f.bytes > 0 {
			n = int(min(int64(n), limit-int64(one.sent)))
		}
		switch {
		case f.time > 0 && now >= f.time, f.bytes > 0 && int64(one.sent) >= limit:
			return nil
		case wait > 0:
			pause(ctx, min(wait, longestPause))
			continue
		}
		if one.omitted == nil && f.omit > 0 && now >= f.omit {
			one.omitted, one.skipped = &Arrivals{}, one.sent
		}
		for i := range n {
			Header{now, one.sent + uint64(i) + 1}.Put(train[i*f.size:], f.wide)
		}
		switch err := one.socket.Send(train[:n*f.size], f.size); {
		case err == nil:
			one.sent += uint64(n)
			f.moved.Add(int64(n * f.size))
			one.last = time.Since(f.started)
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

func (f *flows) receive(one *flow) error {
	buffer := make([]byte, 1<<16)
	remote := one.socket.Remote()
	for {
		n, size, from, err := one.socket.Receive(buffer)
		switch {
		case errors.Is(err, syscall.ECONNREFUSED):
			continue
		case err != nil:
			return err
		case from != remote:
			if one.stray != nil {
				one.stray(from, buffer[:n])
			}
			continue
		}
		now := time.Since(f.started)
		if f.search != nil {
			f.search.mu.Lock()
		}
		if one.arrivals.Datagrams == 0 {
			one.first = now
		}
		if one.omitted == nil && f.omit > 0 && now >= f.omit {
			before := one.arrivals
			one.omitted, one.arrivals.Jitter = &before, 0
		}
		for rest := buffer[:n]; len(rest) > 0; {
			datagram := rest[:min(size, len(rest))]
			rest = rest[len(datagram):]
			if h, ok := ReadHeader(datagram, f.wide); ok {
				above := one.arrivals.Add(h, len(datagram), now)
				one.delays.add(above + one.arrivals.LeastDelay)
				if f.search != nil {
					f.search.delays += above
					f.search.n++
				}
			}
		}
		if f.search != nil {
			f.search.mu.Unlock()
		}
		one.last = now
		f.moved.Add(int64(n))
	}
}

// results are the flows in iperf3's words, numbered from the nth stream on.
func (f *flows) results(n int) (all []StreamResult) {
	for i, one := range f.all {
		r := StreamResult{ID: StreamID(n + i), Retransmits: -1, End: max(one.last-f.omit, 0).Seconds()}
		var errors, packets int64
		if f.sending {
			r.Packets, packets = int64(one.sent), int64(one.skipped)
			r.Bytes = int64(one.sent-one.skipped) * int64(f.size)
		} else {
			a, before := one.arrivals, Arrivals{}
			if one.omitted != nil {
				before = *one.omitted
			}
			errors, packets = before.Lost, int64(before.Highest)
			r.Bytes, r.Packets, r.Errors, r.Jitter = a.Bytes-before.Bytes, int64(a.Highest), a.Lost, a.Jitter.Seconds()
			if f.omit == 0 {
				r.Start = one.first.Seconds()
			}
			r.More = &More{Received: a.Datagrams, Reordered: a.Reordered, Duplicates: a.Duplicates, Variation: f.variation()}
		}
		r.OmittedErrors, r.OmittedPackets = &errors, &packets
		all = append(all, r)
	}
	return all
}

// delays keeps a fair sample of a stream's delays, of bounded size.
type delays struct {
	kept []time.Duration
	seen int
}

const keptDelays = 8192

func (d *delays) add(delay time.Duration) {
	d.seen++
	if len(d.kept) < keptDelays {
		if d.kept == nil {
			d.kept = make([]time.Duration, 0, keptDelays)
		}
		d.kept = append(d.kept, delay)
	} else if i := rand.IntN(d.seen); i < keptDelays {
		d.kept[i] = delay
	}
}

// variation is the distribution above the least delay; nil for no flow that received.
func (f *flows) variation() *transfer.Variation {
	var all []time.Duration
	for _, one := range f.all {
		for _, delay := range one.delays.kept {
			all = append(all, delay-one.arrivals.LeastDelay)
		}
	}
	if len(all) == 0 {
		return nil
	}
	slices.Sort(all)
	at := func(q float64) time.Duration { return all[int(q*float64(len(all)-1))] }
	return &transfer.Variation{Median: at(0.5), P95: at(0.95), P99: at(0.99), Largest: at(1)}
}
