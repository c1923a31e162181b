package verdict

import "github.com/fullpipe-net/fullpipe/internal/verdict/threshold"

// WindowFacts are the known facts of a receive window that limits. Sizes are bytes.
type WindowFacts struct {
	Scale                 int   // the shift; -1: not negotiated
	ScaleKnown            bool  // the handshake was seen
	First                 int64 // the handshake's or the first known; 0: not known
	Largest, Middle, Last int64
	SizeKnown             bool // the receiver reported how its buffer is sized
	Automatic             bool // by its system, not by SO_RCVBUF
	Constant              bool // autotuning is off
	// Requested is what SO_RCVBUF asked for; 0: nothing, or it is not known.
	Requested int64
}

// Subtype returns the reason for the window's size. A window that does not grow is Fixed if it is not known how its
// buffer is sized: SO_RCVBUF, a clamp and an exhausted autotuning ceiling look alike from outside, unless the ceiling
// is the scale's. Below 64 KiB only a system's own sizing grows beyond the handshake's window, which contains all of a
// smaller fixed buffer.
func (f WindowFacts) Subtype() string {
	// A request for more than an unscaled window does not explain a factor of 0: the system did not grant it.
	refused := f.ScaleKnown && f.Scale == 0 && f.Requested > int64(threshold.UnscaledMax.Value)
	fixed := f.SizeKnown && !f.Automatic && !refused
	grew := f.First > 0 && f.Largest > f.First+1<<max(f.Scale, 0)
	largest := float64(f.Largest)
	unscaled := threshold.UnscaledMax.Value
	atMost := largest >= threshold.UnscaledNear.Value*unscaled && largest <= unscaled
	// A buffer that is known at the handshake chooses a scale that contains it. Sizing that stops at the scale's own
	// maximum was allowed no more: a level of Windows' autotuning, for example.
	atScale := f.ScaleKnown && f.Scale > 0 && largest >= threshold.ScaledNear.Value*float64(int64(unscaled)<<f.Scale)
	switch {
	case f.ScaleKnown && f.Scale < 0 && atMost: // a smaller one would be no larger with the option
		return Unscaled
	case fixed: // a small SO_RCVBUF offers a scale of 0
		return Fixed
	case f.SizeKnown && f.Automatic && f.Constant:
		return AutotuneOff
	case f.ScaleKnown && f.Scale == 0 && atMost:
		return ScaleZero
	case atScale && !f.SizeKnown:
		return AutotuneCeiling
	case float64(f.Last) >= threshold.WindowGrows.Value*float64(max(f.First, f.Middle)):
		return AutotuneGrowing
	case f.SizeKnown || f.Scale > 0 && grew && f.Largest > int64(threshold.CeilingMin.Value) &&
		f.Largest <= int64(threshold.UnscaledMax.Value):
		return AutotuneCeiling
	}
	return Fixed
}
