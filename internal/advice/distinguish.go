package advice

import (
	"slices"

	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// Actions that change nothing and distinguish candidates.
const (
	AskSender     Action = "ask-the-sender"           // its kernel and its program: ss -tim, fullpipe why
	AskReceiver   Action = "ask-the-receiver"         // its socket: ss -tm, unread bytes
	CaptureSender Action = "capture-at-the-sender"    // where losses and queues lie before it
	CaptureFar    Action = "capture-at-the-other-end" // where packets vanish, and the direction of a queue
	MeasureLonger Action = "measure-longer"           // a start is no steady rate, nor is growth after a loss
	MeasureWider  Action = "measure-with-twice"       // the window: where that gives no more, the link is full
	MeasureAgain  Action = "measure-again"            // when the disturbance is over
	SeeHandshake  Action = "capture-the-handshake"    // the window scale is in the SYNs only
	LargerBudget  Action = "larger-budget"            // more runs of what may help
)

// OnlyObserves reports whether an action changes nothing and only distinguishes candidates.
func (a Action) OnlyObserves() bool {
	switch a {
	case AskSender, AskReceiver, CaptureSender, CaptureFar, MeasureLonger, MeasureWider, MeasureAgain, SeeHandshake,
		LargerBudget, MeasureOtherEnd:
		return true
	}
	return false
}

// Distinguish returns the steps that decide between the candidates of an open verdict, the cheapest first. It is never
// empty.
func Distinguish(candidates []verdict.Name) (steps []Step) {
	any := func(names ...verdict.Name) bool {
		return slices.ContainsFunc(candidates, func(n verdict.Name) bool { return slices.Contains(names, n) })
	}
	windows := []verdict.Name{verdict.ReceiverWindow, verdict.SendBuffer, verdict.Bottleneck}
	if len(candidates) == 2 && slices.Contains(windows, candidates[0]) && slices.Contains(windows, candidates[1]) {
		return []Step{{MeasureWider, Nowhere, Both, "RFC 6349 section 3.3.1"}}
	}
	if len(candidates) == 2 && any(verdict.Congestion) && any(verdict.Bottleneck) {
		steps = append(steps, Step{MeasureLonger, Nowhere, Both, "RFC 9438 section 4.2: where windows hardly grow"})
	}
	if any(verdict.Application, verdict.SendBuffer, verdict.Pacing, verdict.LocalQueue, verdict.CPU,
		verdict.NagleDelayedAck, verdict.Sender) {
		steps = append(steps, Step{AskSender, Nowhere, Sender, "ss(8) -tim: notsent, cwnd, pacing_rate, busy, " +
			"sndbuf_limited; tcp(7) TCP_INFO"})
	}
	if any(verdict.ReceiverApplication, verdict.ReceiverWindow) {
		steps = append(steps, Step{AskReceiver, Nowhere, Receiver, "ss(8) -tm: Recv-Q, rcv_space, rb of skmem"})
	}
	if any(verdict.Congestion, verdict.Bottleneck, verdict.AckPath, verdict.MTUBlackHole) {
		steps = append(steps, Step{CaptureFar, Nowhere, Receiver, "RFC 6349 section 3.4; RFC 3449"})
	}
	if any(verdict.SlowStart) {
		steps = append(steps, Step{MeasureLonger, Nowhere, Both, "RFC 6349 section 3.3"})
	}
	if len(steps) == 0 {
		steps = []Step{{CaptureSender, Nowhere, Sender, "RFC 4898"}, {AskSender, Nowhere, Sender, "ss(8) -tim"}}
	}
	return steps
}

// Open reports whether a verdict names no single limiter. Steps that distinguish its candidates then come before steps
// against one of them.
func Open(n verdict.Name) bool {
	return n == verdict.Unknown || n == verdict.Mixed || n == verdict.Sender
}
