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

// errTestOver stops the streams at the end of a test.
var errTestOver = errors.New("over")

// tcpDrainTimeout is how long a server waits for the remaining bytes of a byte-limited test after the client's
// TestEnd.
const tcpDrainTimeout = 2 * time.Second

// runData moves the test's data until the client ends it, then exchanges results.
func (t *test) runData(ctx context.Context, directions []direction,
	onInterval func(transfer.Interval)) ([]transfer.Outcome, error) {
	allowed := time.Duration(t.params.Time+t.params.Omit) * time.Second
	if t.params.Time == 0 {
		allowed = t.server.maxTime()
	}
	started := time.Now()
	usage := startUsage()
	user, system := socket.ProcessTimes()
	data, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	errs := make([]error, len(directions))
	var moving sync.WaitGroup
	var rate rateAverage
	var alive, moved atomic.Int64 // time of the last data in ns since startedAt; bytes of all directions
	for i, dir := range directions {
		moving.Go(func() {
			var bytes int64
			report := transfer.WithDirection(directionOf(dir), onInterval)
			errs[i] = dir.run(data, func(i transfer.Interval) {
				if moved.Add(i.Bytes); i.Bytes > 0 {
					alive.Store(int64(time.Since(started)))
				}
				bytes += i.Bytes
				if report != nil {
					report(i)
				}
				if err := t.server.checkMoved(bytes, i.End); err != nil {
					stop(err)
				}
				if err := rate.check(t.server, moved.Load(), time.Since(started)); err != nil {
					stop(err)
				}
			})
		})
	}
	quiet := watchIdle(data, stop, &alive, started, cmp.Or(t.server.IdleTimeout, defaultIdleTimeout))
	ended, err := t.expect(data, allowed+maxOvertime, TestEnd, ClientTerminate)
	if err == nil && ended == TestEnd && !t.params.UDP && !t.params.Reverse {
		waitDrained(data, &moved, t.params.requestedBytes())
	}
	if cause := context.Cause(data); cause != nil {
		err = cause
	}
	stop(errTestOver)
	moving.Wait()
	<-quiet
	outcomes := make([]transfer.Outcome, len(directions))
	for i, dir := range directions {
		complete := err == nil && ended == TestEnd && (errs[i] == nil || errors.Is(errs[i], errTestOver))
		outcomes[i] = t.outcome(dir, started, complete)
	}
	userNow, systemNow := socket.ProcessTimes()
	a := t.result
	a.Legs = outcomes
	a.User = userNow - user
	a.System = systemNow - system
	if allStarted(directions) {
		a.Near = resultsOf(usage, directions...)
	}
	var excess *limitError
	switch {
	case errors.As(err, &excess):
		return outcomes, t.refuse(excess.code, 0, err)
	case errors.Is(err, ErrIdle):
		return outcomes, t.refuse(CodeNoData, 0, err)
	case err != nil:
		return outcomes, err
	case ended == ClientTerminate:
		return outcomes, fmt.Errorf("%v stopped the test", t.from)
	}
	for _, dir := range directions {
		dir.end()
	}
	return outcomes, t.exchangeResults(ctx, a.Near, outcomes)
}

// waitDrained waits after a client's TestEnd until total bytes have arrived and no more follow. iperf3 rounds
// total up to whole writes.
func waitDrained(ctx context.Context, moved *atomic.Int64, total int64) {
	if total == 0 {
		return
	}
	tick := time.NewTicker(2 * reportInterval)
	defer tick.Stop()
	limit := time.After(tcpDrainTimeout)
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

// ErrIdle ends a test that moved no data for IdleTimeout.
var ErrIdle = errors.New("no data moved for too long")

// watchIdle ends a test that moves no data for idleTimeout. The channel closes when watchIdle has stopped.
func watchIdle(ctx context.Context, stop context.CancelCauseFunc, alive *atomic.Int64, started time.Time,
	idleTimeout time.Duration) <-chan struct{} {
	done := make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(idleTimeout / 10)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				if time.Since(started)-time.Duration(alive.Load()) > idleTimeout {
					stop(ErrIdle)
				}
			}
		}
	}()
	return done
}

// exchangeResults runs a test from its end to its last state.
func (t *test) exchangeResults(ctx context.Context, mine Results, outcomes []transfer.Outcome) error {
	if err := t.send(ctx, ExchangeResults); err != nil {
		return err
	}
	// A client may first read a whole block of data in flight.
	text, err := t.readFrame(ctx, resultTimeout, MaxClientResults, "the client's results")
	if err != nil {
		return err
	}
	theirs, err := ParseResults(text)
	if err != nil {
		return fmt.Errorf("results of %v: %w", t.from, err)
	}
	if err := theirs.validate(len(t.result.Streams), time.Since(t.result.Started)); err == nil {
		t.result.Far = theirs
	}
	if t.params.ServerOutput {
		t.addOutput(&mine, outcomes)
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
