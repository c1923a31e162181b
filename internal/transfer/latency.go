package transfer

import "time"

// EchoMethod is the method of a Latency that uses requests to the far end's fullpipe on the control connection. The
// other methods are those of package path.
const EchoMethod = "echo"

// Latency has the round trips of probes in the order of sending: first on the idle path, then during a transfer.
type Latency struct {
	Method string
	Idle   []time.Duration
	Loaded []time.Duration
	Lost   int // probes during the transfer without a response
}
