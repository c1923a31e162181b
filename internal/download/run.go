package download

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/bulk"
	"github.com/fullpipe-net/fullpipe/internal/path"
	"github.com/fullpipe-net/fullpipe/internal/socket"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// Minimum duration of a transfer for a verdict.
const (
	enoughRounds = 20 // round trips
	enoughTime   = 100 * time.Millisecond
)

var errTimeUp = errors.New("time is up")

// Run fetches the object on new connections with the Spec's socket options at this end, until the Spec's time or bytes
// are used up or the object ends. If the object is too small for a verdict, Run returns the Result and *TooSmall.
func (p *Peer) Run(ctx context.Context, t transfer.Test, each func(transfer.Interval)) ([]transfer.Outcome, error) {
	if err := p.Check(t); err != nil {
		return nil, err
	}
	each = transfer.WithDirection(transfer.Down, each)
	if spec, isLoad := t.Requests(); isLoad {
		ctx, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		defer context.AfterFunc(p.ctx, func() { cancel(errors.New("closed")) })()
		r, err := p.runLoad(ctx, spec, each)
		return []transfer.Outcome{{TCP: r}}, err
	}
	r, err := p.fetch(ctx, *t.Legs[0].TCP, each)
	return []transfer.Outcome{{TCP: r}}, err
}

func (p *Peer) fetch(ctx context.Context, spec transfer.Spec, each func(transfer.Interval)) (*transfer.Result, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(p.ctx, func() { cancel(errors.New("closed")) })()
	run := &run{peer: p, spec: spec, stop: cancel}
	load := func() error {
		run.started = time.Now()
		return run.fetchAll(ctx, each)
	}
	if !spec.Latency || !p.object.server.IsValid() {
		return run.result(load())
	}
	latency, why, err := path.UnderLoad(ctx, p.object.server, path.Config{Route: p.config.Route}, load)
	result, err := run.result(err)
	if result != nil {
		result.Latency = latency
		if why != "" {
			result.Warnings = append(result.Warnings, why)
		}
	}
	return result, err
}

// run is one transfer: one fetch or several at once.
type run struct {
	peer    *Peer
	spec    transfer.Spec
	started time.Time
	stop    context.CancelCauseFunc

	fetches []*fetch
	series  [][]transfer.Sample
	ended   []bool
}

func (r *run) fetchAll(ctx context.Context, each func(transfer.Interval)) error {
	n := max(r.spec.Streams, 1)
	total := r.spec.Bytes
	if total == 0 {
		total = max(r.peer.left(), 1)
	}
	n = int(min(int64(n), total)) // each connection fetches at least a byte
	errs := make([]error, n)
	r.series = make([][]transfer.Sample, n)
	r.ended = make([]bool, n)
	for range n {
		f := r.peer.newFetch(r.spec.Near)
		if r.spec.Program.ReadBps > 0 {
			f.transport.ReadBufferSize = 0 // the default, small: nothing is read ahead
		}
		f.clock = r.started
		r.fetches = append(r.fetches, f)
	}
	var fetching, watching sync.WaitGroup
	done := make(chan struct{})
	watching.Go(func() { r.watch(done, each) })
	for i, f := range r.fetches {
		share := total / int64(n)
		if int64(i) < total%int64(n) {
			share++
		}
		fetching.Go(func() { r.ended[i], errs[i] = r.one(ctx, f, share) })
	}
	fetching.Wait()
	close(done)
	watching.Wait()
	if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, errTimeUp) {
		return cause
	}
	for i, err := range errs {
		if err != nil && !errors.Is(context.Cause(ctx), errTimeUp) {
			return fmt.Errorf("connection %d: %w", i+1, err)
		}
	}
	return nil
}

// one fetches at most want bytes on one connection.
func (r *run) one(ctx context.Context, f *fetch, want int64) (ended bool, err error) {
	defer context.AfterFunc(ctx, f.interrupt)()
	granted, err := r.peer.take(want)
	if err != nil {
		return false, err
	}
	defer func() {
		used := int64(0)
		if c := f.current(); c != nil {
			used = c.received().Bytes
		}
		r.peer.giveBack(granted - used)
	}()
	o := r.peer.object
	byteRange := ""
	if o.ranges && granted < o.size {
		byteRange = fmt.Sprintf("bytes=0-%d", granted-1)
	}
	response, err := f.do(ctx, http.MethodGet, o.url, byteRange)
	if err != nil {
		return false, err
	}
	if response.StatusCode != http.StatusOK && response.StatusCode != http.StatusPartialContent {
		return false, &StatusError{o.url.Redacted(), response.StatusCode}
	}
	ended, err = f.read(granted, r.spec.Program.ReadBps)
	f.current().enough()
	ended = ended || err == nil && granted == o.size // not where the time was up before
	return ended && byteRange == "", err
}

// watch samples the connections, reports intervals and ends the transfer when its time since the first byte is up.
func (r *run) watch(done <-chan struct{}, each func(transfer.Interval)) {
	var first, at time.Duration
	var reported int64
	report := func(now time.Duration, total int64) {
		if each != nil && total > reported {
			each(transfer.Interval{Start: at - first, End: now - first, Bytes: total - reported})
		}
		at = now
		reported = total
	}
	for finished := false; !finished; {
		timer := time.NewTimer(bulk.Cadence(time.Since(r.started)))
		select {
		case <-timer.C:
		case <-done:
			finished = true
		}
		timer.Stop()
		var total int64
		var last time.Duration
		for i, f := range r.fetches {
			c := f.current()
			if c == nil {
				continue
			}
			if s, ok := c.sample(); ok {
				r.series[i] = append(r.series[i], s)
				if len(r.series[i]) > bulk.MaxSamples/len(r.fetches) {
					r.series[i] = transfer.Downsample(r.series[i], len(r.series[i])/2)
				}
			}
			came := c.received()
			total += came.Bytes
			if came.Bytes > 0 && (first == 0 || came.First < first) {
				first = came.First
				at = max(at, came.First)
			}
			last = max(last, came.Last)
		}
		now := time.Since(r.started)
		switch {
		case finished:
			report(max(last, at), total)
		case first > 0 && now-at >= 100*time.Millisecond:
			report(now, total)
		}
		if r.spec.Time > 0 && first > 0 && now-first >= r.spec.Time {
			r.stop(errTimeUp)
		}
	}
}

// result returns the Result of the finished transfer. With an error it covers the bytes received before the error.
func (r *run) result(err error) (*transfer.Result, error) {
	result := &transfer.Result{Spec: r.spec, Started: r.started, Complete: err == nil,
		Near: &transfer.End{Kernel: socket.Kernel()}}
	ended := true
	var total int64
	var longest time.Duration
	for i, f := range r.fetches {
		s, ok := f.release()
		if !ok {
			continue
		}
		s.Samples = r.series[i]
		came := f.current().received()
		s.Bytes = came.Bytes
		s.FirstReadBytes = came.FirstReadBytes
		s.First = came.First
		s.Last = came.Last
		for _, sample := range s.Samples {
			s.ReceiveBuffer.Effective = max(s.ReceiveBuffer.Effective, int(sample.ReceiveWnd))
		}
		result.Near.Streams = append(result.Near.Streams, s)
		total += s.Bytes
		longest = max(longest, s.Last-s.First)
		ended = ended && r.ended[i]
	}
	if len(result.Near.Streams) == 0 || total == 0 {
		return nil, err
	}
	if r.peer.object.proto == "HTTP/2.0" {
		result.Warnings = append(result.Warnings, "fetched over HTTP/2, with a flow-control window so large that only "+
			"TCP's limits")
	}
	if rounds, few := tooFew(result, longest); err == nil && ended && few {
		err = &TooSmall{total, rounds}
	}
	return result, err
}

// tooFew returns the duration of a transfer in round trips, and whether it is too short for a verdict.
func tooFew(r *transfer.Result, d time.Duration) (rounds float64, few bool) {
	rtt := r.Near.MinRTT()
	if rtt > 0 {
		rounds = float64(d) / float64(rtt)
	}
	return rounds, d < enoughTime || rtt > 0 && rounds < enoughRounds
}
