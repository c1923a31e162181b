package transfer

import "time"

// ByEcho is a Latency's method: questions that the far end's fullpipe answers on the
// control connection. Other methods are those of package path.
const ByEcho = "echo"

// Latency is how long small packets took there and back, first with nothing else under
// way and then beside a transfer, in the order of asking.
type Latency struct {
	Method string
	Idle   []time.Duration
	Loaded []time.Duration
	Lost   int // asked beside the transfer and never answered
}
