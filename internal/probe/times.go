package probe

import (
	"cmp"
	"time"
)

// Timeouts are one end's timeouts for the other. A zero field has its value of DefaultTimeouts.
type Timeouts struct {
	Answer time.Duration // each of connecting, handshake, answer and data connections
	Result time.Duration // the far end's result, behind queued data
	Stop   time.Duration // the far end's result after an interruption
	Stall  time.Duration // no progress and no keepalive
	Idle   time.Duration // a session without requests
}

// DefaultTimeouts returns the default timeouts.
func DefaultTimeouts() Timeouts {
	return Timeouts{Answer: 10 * time.Second, Result: 20 * time.Second, Stop: 2 * time.Second, Stall: 20 * time.Second,
		Idle: 5 * time.Minute}
}

// withDefaults replaces zero fields by defaults.
func (t Timeouts) withDefaults() Timeouts {
	d := DefaultTimeouts()
	return Timeouts{Answer: cmp.Or(t.Answer, d.Answer), Result: cmp.Or(t.Result, d.Result), Stop: cmp.Or(t.Stop, d.Stop),
		Stall: cmp.Or(t.Stall, d.Stall), Idle: cmp.Or(t.Idle, d.Idle)}
}
