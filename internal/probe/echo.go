package probe

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/engine"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

const (
	// idleEchoes are asked before a transfer, as many as fit into idleTimeSpent and at
	// least leastEchoes.
	idleEchoes    = 10
	leastEchoes   = 3
	idleTimeSpent = 300 * time.Millisecond
	// echoEvery is how often one is asked beside a transfer, but not before payloadEach
	// more bytes have arrived: with its headers an echo is up to some 250 bytes, and shall not
	// show in what a slow link carries.
	echoEvery   = 100 * time.Millisecond
	payloadEach = 32 << 10
)

// echo is a question and its answer.
type echo struct {
	Number uint32 `json:"n"`
	// Sending is added by a server that sends payload meanwhile.
	Sending *transfer.Sending `json:"sending,omitempty"`
	// ClockNs is the server's clock when it answered: nanoseconds since the session began, by
	// a clock that is never set. 0: it does not tell.
	ClockNs int64 `json:"clock_ns,omitempty"`
}

// echoes asks the far end beside a transfer. One question is under way at a time.
type echoes struct {
	ctl   *control
	spec  transfer.Spec
	begun time.Time
	moved atomic.Int64   // payload that has arrived
	far   *engine.Latest // how the far end stands, if it sends

	mu      sync.Mutex // guards what follows
	latency transfer.Latency
	number  uint32
	asked   time.Time
	waiting bool
	clock   int64 // the last ClockNs
	drift   drift
}

// longestSession bounds the far end's clock, which counts from the session's beginning.
const longestSession = 366 * 24 * time.Hour

// idle asks before the transfer, while nobody else reads the control connection.
func (e *echoes) idle(ctx context.Context) error {
	e.latency.Method = transfer.ByEcho
	for start := time.Now(); len(e.latency.Idle) < idleEchoes; {
		if len(e.latency.Idle) >= leastEchoes && time.Since(start) > idleTimeSpent {
			break
		}
		if err := e.ask(); err != nil {
			return err
		}
		m, err := e.ctl.next(ctx, e.ctl.times.Answer)
		if err != nil {
			return err
		}
		if err := e.answered(m); err != nil {
			return err
		}
	}
	return nil
}

func (e *echoes) ask() error {
	e.mu.Lock()
	e.number++
	question := echo{Number: e.number}
	e.asked = time.Now()
	e.waiting = true
	e.mu.Unlock()
	return e.ctl.send(kindEcho, question)
}

// answered books an answer: as one under load once the transfer's bytes arrive.
func (e *echoes) answered(m message) error {
	now := time.Now()
	var answer echo
	if err := m.decode(kindEcho, &answer); err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.waiting || answer.Number != e.number {
		return fmt.Errorf("an answer to question %d that was not asked", answer.Number)
	}
	e.waiting = false
	if answer.Sending != nil && e.far != nil {
		if err := answer.Sending.Believe(e.spec, now.Sub(e.begun)); err != nil {
			return err
		}
		e.far.Set(*answer.Sending)
	}
	took := now.Sub(e.asked)
	if answer.ClockNs != 0 {
		if answer.ClockNs < e.clock || answer.ClockNs > int64(longestSession) {
			return &transfer.UnbelievableError{Field: "clock_ns", Value: answer.ClockNs,
				Why: fmt.Sprintf("is not between %d, which it said before, and a year", e.clock)}
		}
		e.clock = answer.ClockNs
		e.drift.add(e.asked.Sub(e.begun), now.Sub(e.begun), time.Duration(answer.ClockNs))
	}
	if e.moved.Load() > 0 {
		e.latency.Loaded = append(e.latency.Loaded, took)
	} else {
		e.latency.Idle = append(e.latency.Idle, took)
	}
	return nil
}

// run asks until ctx ends.
func (e *echoes) run(ctx context.Context) {
	tick := time.NewTicker(echoEvery)
	defer tick.Stop()
	for paid := int64(0); ; {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		e.mu.Lock()
		waiting := e.waiting
		e.mu.Unlock()
		moved := e.moved.Load()
		if waiting || moved-paid < payloadEach {
			continue
		}
		paid = moved
		if e.ask() != nil {
			return // whoever reads the connection says why
		}
	}
}

// result is what was learned, when nobody reads the connection for it any more. An
// unanswered question counts as lost.
func (e *echoes) result() (latency *transfer.Latency, drift float64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.waiting {
		e.latency.Lost++
		e.waiting = false
		e.ctl.stale++
	}
	return &e.latency, e.drift.shown
}
