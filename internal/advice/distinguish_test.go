package advice

import (
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

func TestDistinguish(t *testing.T) {
	for _, c := range []struct {
		candidates []verdict.Name
		first      Action
		steps      int
	}{
		{[]verdict.Name{verdict.Application, verdict.SendBuffer}, AskSender, 1},
		{[]verdict.Name{verdict.ReceiverApplication, verdict.ReceiverWindow}, AskReceiver, 1},
		{[]verdict.Name{verdict.Congestion, verdict.Bottleneck}, MeasureLonger, 2},
		{[]verdict.Name{verdict.Bottleneck, verdict.AckPath}, CaptureFar, 1},
		{[]verdict.Name{verdict.ReceiverWindow, verdict.Bottleneck}, MeasureWider, 1},
		{[]verdict.Name{verdict.SendBuffer, verdict.Bottleneck}, MeasureWider, 1},
		{[]verdict.Name{verdict.SendBuffer, verdict.ReceiverWindow}, MeasureWider, 1},
		{[]verdict.Name{verdict.Application, verdict.ReceiverWindow, verdict.Congestion, verdict.SlowStart}, AskSender, 4},
		{nil, CaptureSender, 2},
	} {
		steps := Distinguish(c.candidates)
		if len(steps) != c.steps || steps[0].Action != c.first {
			t.Errorf("%v: %+v", c.candidates, steps)
		}
		for _, s := range steps {
			if s.Scope != Nowhere || s.Source == "" || !s.Action.OnlyObserves() {
				t.Errorf("%v: %+v changes something, or has no source", c.candidates, s)
			}
		}
	}
}

// Every limiter has a step that distinguishes it from others.
func TestDistinguish_EveryLimiter(t *testing.T) {
	for _, n := range verdict.Names() {
		if len(Distinguish([]verdict.Name{n})) == 0 {
			t.Errorf("%s: no step", n)
		}
	}
}
