package iperf3

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/socket"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// errOver ends a test's loads because the test is over.
var errOver = errors.New("over")

// arriving is how long a server waits for the rest of a test that is bounded by bytes
// after the client has said that it sent all.
const arriving = 2 * time.Second

// run moves the test's data until the client ends it, and exchanges results.
func (t *test) run(ctx context.Context, halves []half, each func(transfer.Interval)) ([]transfer.Outcome, error) {
	allowed := time.Duration(t.params.Time+t.params.Omit) * time.Second
	if t.params.Time == 0 {
		allowed = t.server.maxTime()
	}
	started := time.Now()
	usage := startUsage()
	user, system := socket.ProcessTimes()
	data, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	errs := make([]error, len(halves))
	var moving sync.WaitGroup
	var rate average
	var alive, moved atomic.Int64 // when data last moved, in ns since started; bytes of all halves
	for i, h := range halves {
		moving.Go(func() {
			var bytes int64
			tell := transfer.Toward(direction(h), each)
			errs[i] = h.run(data, func(i transfer.Interval) {
				if moved.Add(i.Bytes); i.Bytes > 0 {
					alive.Store(int64(time.Since(started)))
				}
				bytes += i.Bytes
				if tell != nil {
					tell(i)
				}
				if err := t.server.excess(bytes, i.End); err != nil {
					stop(err)
				}
				if err := rate.excess(t.server, moved.Load(), time.Since(started)); err != nil {
					stop(err)
				}
			})
		})
	}
	quiet := watch(data, stop, &alive, started, cmp.Or(t.server.Quiet, dataPatience))
	ended, err := t.expect(data, allowed+overtime, TestEnd, ClientTerminate)
	if err == nil && ended == TestEnd && !t.params.UDP && !t.params.Reverse {
		await(data, &moved, t.params.total())
	}
	if cause := context.Cause(data); cause != nil {
		err = cause
	}
	stop(errOver)
	moving.Wait()
	<-quiet
	outcomes := make([]transfer.Outcome, len(halves))
	for i, h := range halves {
		complete := err == nil && ended == TestEnd && (errs[i] == nil || errors.Is(errs[i], errOver))
		outcomes[i] = t.outcome(h, started, complete)
	}
	userNow, systemNow := socket.ProcessTimes()
	a := t.account
	a.Legs = outcomes
	a.User = userNow - user
	a.System = systemNow - system
	if begun(halves) {
		a.Mine = resultsOf(usage, halves...)
	}
	var excess *excessError
	switch {
	case errors.As(err, &excess):
		return outcomes, t.refuse(excess.code, 0, err)
	case errors.Is(err, ErrQuiet):
		return outcomes, t.refuse(CodeNoData, 0, err)
	case err != nil:
		return outcomes, err
	case ended == ClientTerminate:
		return outcomes, fmt.Errorf("%v stopped the test", t.from)
	}
	for _, h := range halves {
		h.end()
	}
	return outcomes, t.exchange(ctx, a.Mine, outcomes)
}

// await waits until a client that has said that it sent all has nothing more on its way:
// total bytes came and then none for a while. iperf3 rounds total up to whole writes.
func await(ctx context.Context, moved *atomic.Int64, total int64) {
	if total == 0 {
		return
	}
	tick := time.NewTicker(2 * reportEvery)
	defer tick.Stop()
	limit := time.After(arriving)
	for before := int64(-1); ; before = moved.Load() {
		select {
		case <-tick.C:
			if now := moved.Load(); now >= total && now == before {
				return
			}
		case <-limit:
			return
		case <-ctx.Done():
			return
		}
	}
}

// ErrQuiet is a test whose data stood still.
var ErrQuiet = errors.New("no data moved for too long")

// watch ends a test whose data stands still. The channel closes when it has stopped.
func watch(ctx context.Context, stop context.CancelCauseFunc, alive *atomic.Int64, started time.Time,
	patience time.Duration) <-chan struct{} {
	done := make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(patience / 10)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				if time.Since(started)-time.Duration(alive.Load()) > patience {
					stop(ErrQuiet)
				}
			}
		}
	}()
	return done
}

// exchange carries a test from its end to its last state.
func (t *test) exchange(ctx context.Context, mine Results, outcomes []transfer.Outcome) error {
	if err := t.send(ctx, ExchangeResults); err != nil {
		return err
	}
	// A client may first read a whole block of what was on its way.
	text, err := t.readFrame(ctx, resultTimeout, MaxClientResults, "the client's results")
	if err != nil {
		return err
	}
	theirs, err := ParseResults(text)
	if err != nil {
		return fmt.Errorf("results of %v: %w", t.from, err)
	}
	if err := theirs.believe(len(t.account.Streams), time.Since(t.account.Started)); err == nil {
		t.account.Far = theirs
	}
	if t.params.ServerOutput {
		t.putOutput(&mine, outcomes)
	}
	if err := t.sendFrame(ctx, mine, "the results"); err != nil {
		return err
	}
	if err := t.send(ctx, DisplayResults); err != nil {
		return err
	}
	if _, err := t.expect(ctx, goodbyeTime, Done); err != nil && !errors.Is(err, io.EOF) &&
		!errors.Is(err, syscall.ECONNRESET) {
		return err
	}
	return nil
}
