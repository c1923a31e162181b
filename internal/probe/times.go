package probe

import (
	"cmp"
	"time"
)

// Times bound every wait of an end for the other. A zero field is that of DefaultTimes.
type Times struct {
	Answer time.Duration // for each of: connecting, the handshake, an answer, the data connections
	Result time.Duration // for the far end's result, behind what still stands in queues
	Stop   time.Duration // for the far end's result when we were interrupted
	Stall  time.Duration // without any progress or sign of life
	Idle   time.Duration // that a server keeps a client that asks for nothing
}

// DefaultTimes are those of every end that is told no others.
func DefaultTimes() Times {
	return Times{Answer: 10 * time.Second, Result: 20 * time.Second, Stop: 2 * time.Second, Stall: 20 * time.Second,
		Idle: 5 * time.Minute}
}

// complete fills in what is zero.
func (t Times) complete() Times {
	d := DefaultTimes()
	return Times{Answer: cmp.Or(t.Answer, d.Answer), Result: cmp.Or(t.Result, d.Result), Stop: cmp.Or(t.Stop, d.Stop),
		Stall: cmp.Or(t.Stall, d.Stall), Idle: cmp.Or(t.Idle, d.Idle)}
}
