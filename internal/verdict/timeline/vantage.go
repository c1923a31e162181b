package timeline

import (
	"github.com/fullpipe-net/fullpipe/internal/flow"
	"github.com/fullpipe-net/fullpipe/internal/verdict/threshold"
)

// Vantage is where a capture was taken, seen from the data's sender.
type Vantage string

const (
	AtSender       Vantage = "sender"
	AtReceiver     Vantage = "receiver"
	InTheMiddle    Vantage = "middle"
	VantageUnknown Vantage = "unknown"
)

// vantage returns where the tap is, by the share of the round trip between it and the sender.
func vantage(d *flow.Direction) Vantage {
	if !d.LoopKnown || d.RTTMin <= 0 {
		return VantageUnknown
	}
	switch share := float64(d.LoopMin) / float64(d.RTTMin); {
	case share <= threshold.TapAtSender.Value:
		return AtSender
	case share >= threshold.TapAtReceiver.Value:
		return AtReceiver
	}
	return InTheMiddle
}
