package probe

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/bulk"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

const (
	// Before a transfer the client sends up to maxIdleEchoes within idleEchoTime, and at least minIdleEchoes.
	maxIdleEchoes = 10
	minIdleEchoes = 3
	idleEchoTime  = 300 * time.Millisecond
	// During a transfer it sends an echo at most each echoInterval and after minPayloadPerEcho bytes. An echo has
	// up to 250 bytes with headers, which must not slow down a slow link.
	echoInterval      = 100 * time.Millisecond
	minPayloadPerEcho = 32 << 10
)

// echo is a request and its reply.
type echo struct {
	Number uint32 `json:"n"`
	// Sending is set by a server that sends payload.
	Sending *transfer.Sending `json:"sending,omitempty"`
	// ClockNs is the server's monotonic clock, ns since the start of the session. 0: unknown.
	ClockNs int64 `json:"clock_ns,omitempty"`
}

// echoProbe sends echoes during a transfer. One echo is outstanding at a time.
type echoProbe struct {
	ctl          *control
	spec         transfer.Spec
	startedAt    time.Time
	payloadBytes atomic.Int64 // received
	farSending   *bulk.Latest // the far sender's state

	mu          sync.Mutex // guards the fields below
	latency     transfer.Latency
	number      uint32
	sentAt      time.Time
	pending     bool
	lastClockNs int64
	drift       drift
}

// maxSession limits the far end's clock, which counts from the session's start.
const maxSession = 366 * 24 * time.Hour

// probeIdle sends echoes before the transfer and reads the replies itself.
func (e *echoProbe) probeIdle(ctx context.Context) error {
	e.latency.Method = transfer.EchoMethod
	for start := time.Now(); len(e.latency.Idle) < maxIdleEchoes; {
		if len(e.latency.Idle) >= minIdleEchoes && time.Since(start) > idleEchoTime {
			break
		}
		if err := e.send(); err != nil {
			return err
		}
		m, err := e.ctl.readNext(ctx, e.ctl.timeouts.Answer)
		if err != nil {
			return err
		}
		if err := e.receive(m); err != nil {
			return err
		}
	}
	return nil
}

func (e *echoProbe) send() error {
	e.mu.Lock()
	e.number++
	question := echo{Number: e.number}
	e.sentAt = time.Now()
	e.pending = true
	e.mu.Unlock()
	return e.ctl.send(kindEcho, question)
}

// receive records a reply: as loaded latency once payload has arrived.
func (e *echoProbe) receive(m message) error {
	now := time.Now()
	var answer echo
	if err := m.decode(kindEcho, &answer); err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.pending || answer.Number != e.number {
		return fmt.Errorf("an answer to echo %d that was not sent", answer.Number)
	}
	e.pending = false
	if answer.Sending != nil && e.farSending != nil {
		if err := answer.Sending.Validate(e.spec, now.Sub(e.startedAt)); err != nil {
			return err
		}
		e.farSending.Set(*answer.Sending)
	}
	took := now.Sub(e.sentAt)
	if answer.ClockNs != 0 {
		if answer.ClockNs < e.lastClockNs || answer.ClockNs > int64(maxSession) {
			return &transfer.ImplausibleError{Field: "clock_ns", Value: answer.ClockNs,
				Reason: fmt.Sprintf("is not between the last value %d and a year", e.lastClockNs)}
		}
		e.lastClockNs = answer.ClockNs
		e.drift.add(e.sentAt.Sub(e.startedAt), now.Sub(e.startedAt), time.Duration(answer.ClockNs))
	}
	if e.payloadBytes.Load() > 0 {
		e.latency.Loaded = append(e.latency.Loaded, took)
	} else {
		e.latency.Idle = append(e.latency.Idle, took)
	}
	return nil
}

// run sends echoes until ctx ends.
func (e *echoProbe) run(ctx context.Context) {
	tick := time.NewTicker(echoInterval)
	defer tick.Stop()
	for paid := int64(0); ; {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		e.mu.Lock()
		waiting := e.pending
		e.mu.Unlock()
		moved := e.payloadBytes.Load()
		if waiting || moved-paid < minPayloadPerEcho {
			continue
		}
		paid = moved
		if e.send() != nil {
			return // the connection's reader reports the error
		}
	}
}

// result returns the latency after the last read of the connection. A missing reply counts as lost.
func (e *echoProbe) result() (latency *transfer.Latency, drift float64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.pending {
		e.latency.Lost++
		e.pending = false
		e.ctl.staleEchoes++
	}
	return &e.latency, e.drift.ratio
}
