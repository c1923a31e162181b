package advice

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/fullpipe-net/fullpipe/internal/model"
	"github.com/fullpipe-net/fullpipe/internal/plan"
	"github.com/fullpipe-net/fullpipe/internal/units"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
	"github.com/fullpipe-net/fullpipe/internal/verdict/threshold"
)

// Fix is one action against a limiter, or, for an open verdict, one that distinguishes its candidates.
type Fix struct {
	Limiter verdict.Name `json:"limiter"`
	Action  Action       `json:"action"`
	Text    string       `json:"text,omitempty"` // the same in the imperative; package report fills it in
	// Scope is program, route, host or network; absent where nothing is changed.
	Scope    Scope          `json:"scope,omitempty"`
	End      End            `json:"end"`
	System   System         `json:"system,omitempty"` // absent: Linux, or the same on every system
	Settings []plan.Setting `json:"settings"`
	Ceiling  *Ceiling       `json:"ceiling,omitempty"`  // of the automatic buffer that is full
	Expected *Expected      `json:"expected,omitempty"` // absent: not known
	Source   string         `json:"source"`
}

// Ceiling is a setting that ends automatic sizing of a buffer.
type Ceiling struct {
	Name        string `json:"name"`
	Bytes       int    `json:"bytes"`                  // now
	NeededBytes int    `json:"needed_bytes,omitempty"` // absent: not known
}

// Expected is the goodput that a fix would give.
type Expected struct {
	LowBps  float64 `json:"low_bps"`
	HighBps float64 `json:"high_bps,omitempty"`
	AtLeast bool    `json:"at_least"` // the next limiter is not known
}

// Facts are the known facts about a transfer and its path. A zero field is not known.
type Facts struct {
	GoodputBps float64 // payload, as it was
	PathBps    float64 // payload, as the path carries
	Bytes      int64   // of the transfer
	DurationS  float64 // of the transfer, startup included
	RTTS       float64 // least
	MSSBytes   int
	PassingMSS int    // the largest that was measured to get through where larger segments vanish
	PassingMTU int    // of packets with such segments
	Congestion string // the sender's
	// Sender and Receiver are the ends' systems.
	Sender, Receiver System
	// SendBufferMax and ReceiveBufferMax are the ends of automatic sizing where it went as far as that, in bytes.
	SendBufferMax, ReceiveBufferMax int
	Windows                         []plan.Setting // that were planned
	Unscaled                        bool           // no window scale was agreed on
}

// Fixes returns the actions against a verdict, in order. For an open verdict they distinguish its candidates. The first
// step against a named limiter gains at least a tenth, by the word's definition, and at most the path's capacity.
func Fixes(v verdict.Verdict, f Facts) []Fix {
	steps := For(v.Limiter, v.Subtype)
	if Open(v.Limiter) || v.Confidence == verdict.Low && len(v.Candidates) > 1 { // one guess among several
		steps = Distinguish(v.Candidates)
	}
	shows := func(code verdict.Code) bool {
		return slices.ContainsFunc(v.Evidence, func(e verdict.Evidence) bool { return e.Code == code })
	}
	if v.Subtype == verdict.AckTimer && shows(verdict.WindowAwaitsAckTimer) { // not the sender's blocks
		steps = f.ackTimerSteps(v.Evidence)
	}
	if f.Unscaled && v.Limiter == verdict.ReceiverWindow && v.Subtype == verdict.Fixed { // then for more than 64 KiB
		steps = []Step{windows, scaling, streams}
	}
	if shows(verdict.CapturedSACKOutside) {
		steps = append([]Step{keepSACK}, steps...)
	}
	ceiling := f.ceiling(&v)
	if ceiling != nil && steps[0].Scope != Nowhere {
		steps = raiseFirst(steps, v.Limiter)
	}
	fixes := []Fix{}
	for _, s := range steps {
		// Another control does not pass a policer. One that slows down for each loss, real or by reordering, carries less
		// than BBR.
		if s.Action == OtherControl && v.Limiter == verdict.Congestion && (v.Subtype == verdict.Policer || f.usesBBR()) {
			continue
		}
		for _, at := range f.places(s) {
			fix := Fix{Limiter: v.Limiter, Action: s.Action, Scope: s.Scope, End: at.end, System: at.system,
				Settings: f.settings(s, at, v), Source: s.sourceOn(at.system)}
			if s.Action == RaiseCeilings && (at.system == Linux || at.system.Family() == Windows) {
				fix.Ceiling = ceiling
			}
			if s.Scope != Nowhere && s.Action != PaceBelow { // it removes the losses, not the limit
				fix.Expected = f.expected(s, len(fixes) == 0)
			}
			fixes = append(fixes, fix)
		}
	}
	return fixes
}

// ackTimerSteps returns the steps against a receive window that waits for the delayed-ACK timer. A
// receiver that lets its timer acknowledge two segments and more does so at any window: RFC 1122
// section 4.2.3.2 asks for an acknowledgement of every second one.
func (f *Facts) ackTimerSteps(all []verdict.Evidence) []Step {
	// a sender halves segments for a smaller window
	segment := float64(max(f.MSSBytes, ethernetSegment))
	for _, e := range all {
		if e.Code == verdict.WindowAwaitsAckTimer && e.Values["window_bytes"] >= 2*segment {
			return []Step{quickAck, unfix, windows}
		}
	}
	return []Step{unfix, windows, quickAck}
}

// ethernetSegment is the payload of a full Ethernet packet with timestamps, in bytes.
const ethernetSegment = 1448

// ceiling returns the setting that limits the full automatic buffer; nil where no automatic buffer is full.
func (f *Facts) ceiling(v *verdict.Verdict) *Ceiling {
	c := &Ceiling{}
	switch {
	case v.Subtype == verdict.Unscaled || v.Subtype == verdict.ScaleZero || v.Subtype == verdict.ScaleMismatch:
		return nil // the window scale limits it, not the buffer
	case v.Limiter == verdict.SendBuffer && f.SendBufferMax > 0:
		c.Name = "net.ipv4.tcp_wmem"
		c.Bytes = f.SendBufferMax
	case v.Limiter == verdict.ReceiverWindow && f.ReceiveBufferMax > 0:
		c.Name = "net.ipv4.tcp_rmem"
		c.Bytes = f.ReceiveBufferMax
	case v.Subtype == verdict.AutotuneCeiling && f.Receiver.Family() == Windows:
		return f.autotuningLevel(v)
	default:
		return nil
	}
	if needed := model.LinuxBufferFactor * f.window(); needed > c.Bytes {
		c.NeededBytes = needed
	}
	return c
}

// autotuningLevel returns the level of Windows' autotuning that ends at the full receive window, as netsh shows it; nil
// where none does.
func (f *Facts) autotuningLevel(v *verdict.Verdict) *Ceiling {
	for _, e := range v.Evidence {
		window := int(e.Values["window_bytes"])
		if level := plan.AutotuningLevel(window); level != "" && e.Limiter == v.Limiter {
			c := &Ceiling{Name: "autotuninglevel=" + strings.ToLower(level), Bytes: window}
			if needed := f.window(); needed > window {
				c.NeededBytes = needed
			}
			return c
		}
	}
	return nil
}

// raiseFirst puts raising the ceiling first. It drops the advice to leave buffers alone.
func raiseFirst(steps []Step, limiter verdict.Name) []Step {
	raise := ceilings
	raise.End = Receiver
	if limiter == verdict.SendBuffer {
		raise.End = Sender
	}
	return append([]Step{raise}, slices.DeleteFunc(slices.Clone(steps), func(s Step) bool {
		return s.Action == RaiseCeilings || s.Action == LargerWindows
	})...)
}

// AskAgain puts measuring once more before all else where a disturbance left a verdict of low confidence.
func AskAgain(v verdict.Verdict, fixes []Fix) []Fix {
	if v.Confidence != verdict.Low || !v.Disturbed() {
		return fixes
	}
	return append([]Fix{Repeat(v.Limiter, Both)}, fixes...)
}

// Repeat returns the fix that asks for another measurement when an end is quiet.
func Repeat(limiter verdict.Name, end End) Fix {
	return Fix{Limiter: limiter, Action: MeasureAgain, Scope: Nowhere, End: end,
		Settings: []plan.Setting{}, Source: "the evidence of this measurement"}
}

// expected is the goodput with a step: of a larger initial window by the round trips that it
// spares, of the first step by what limiting means; nil where nothing is known.
func (f *Facts) expected(s Step, first bool) *Expected {
	if f.GoodputBps <= 0 {
		return nil
	}
	if spared := f.sparedS(); s.Action == InitialWindow && spared > 0 && spared < f.DurationS {
		return &Expected{LowBps: f.GoodputBps, HighBps: f.GoodputBps * f.DurationS / (f.DurationS - spared)}
	}
	if !first {
		return nil
	}
	most := f.PathBps
	if f.Unscaled && s.Action == LargerWindows && f.RTTS > 0 {
		most = cmp.Or(min(most, model.MaxUnscaled*8/f.RTTS), model.MaxUnscaled*8/f.RTTS)
	}
	low := threshold.CauseFactor.Value * f.GoodputBps
	if most <= low {
		return nil // that a limiter costs a tenth is its definition, no forecast
	}
	return &Expected{LowBps: low, HighBps: most}
}

// initialWindow is the number of segments to begin with; 0 where no more than usual is better.
func (f *Facts) initialWindow() int {
	return model.LargerInitialWindow(f.Bytes, f.PathBps, units.Seconds(f.RTTS), f.MSSBytes)
}

// sparedS is the time of the round trips that the larger initial window spares: slow start
// doubles the window each round trip (RFC 5681 section 3.1).
func (f *Facts) sparedS() float64 {
	rounds := func(initial int) float64 {
		return math.Ceil(math.Log2(float64(f.Bytes)/float64(initial*f.MSSBytes) + 1))
	}
	initial := f.initialWindow()
	if initial == 0 || f.RTTS <= 0 {
		return 0
	}
	return (rounds(model.InitialWindow) - rounds(initial)) * f.RTTS
}

// cleanBps is the rate at which a paced run lost nothing, in payload; 0 where there was none. The mean rate behind a
// policer is none: a bucket shorter than a window's burst keeps it far below the policer's.
func cleanBps(v *verdict.Verdict) float64 {
	for _, e := range v.Evidence {
		if e.Code == verdict.PacedLosesNothing {
			return e.Values["paced_bps"]
		}
	}
	return 0
}

// fewStreams is how many connections at once the advice begins with, where it was not measured how many fill the path.
const fewStreams = 4

// streamsAtOnce returns the number of connections to use: those that were measured to fill the path, or fewStreams.
func streamsAtOnce(v *verdict.Verdict) int {
	for _, e := range v.Evidence {
		if e.Code == verdict.StreamsCarryMore && e.Values["fill_streams"] > 1 {
			return int(e.Values["fill_streams"])
		}
	}
	return fewStreams
}

// minMSS is the least PassingMSS that is advised: every path carries it (RFC 9293 section 3.7.1).
const minMSS = 536
