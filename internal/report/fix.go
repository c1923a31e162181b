package report

import (
	"math"
	"strconv"

	"github.com/fullpipe-net/fullpipe/internal/model"
	"github.com/fullpipe-net/fullpipe/internal/plan"
	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/remedy"
	"github.com/fullpipe-net/fullpipe/internal/units"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
	"github.com/fullpipe-net/fullpipe/internal/verdict/threshold"
)

// FixFacts are what is known where a fix is wanted. A zero field is not known.
type FixFacts struct {
	GoodputBps float64 // payload, as it was
	PathBps    float64 // payload, as the path carries
	Bytes      int64   // of the transfer
	DurationS  float64 // of the transfer, startup included
	RTTS       float64 // least
	MSSBytes   int
	Congestion string         // the sender's
	Windows    []plan.Setting // that were planned
}

// Fixes lists what to do about a verdict, in order, and where the verdict is open what
// tells its candidates apart. Of a limiter that is named, the first step gives a tenth more
// at the least, by the word's definition, and at most what the path carries.
func Fixes(v verdict.Verdict, f FixFacts) []record.Fix {
	steps := remedy.For(v.Limiter, v.Subtype)
	if remedy.Open(v.Limiter) || v.Confidence == verdict.Low && len(v.Candidates) > 1 { // one guess among several
		steps = remedy.Tell(v.Candidates)
	}
	fixes := []record.Fix{}
	for i, s := range steps {
		fix := record.Fix{Limiter: v.Limiter, Action: s.Action, Scope: s.Scope, End: s.End, Settings: f.settings(s, v),
			Source: s.Source}
		if s.Scope != remedy.Nowhere {
			fix.Expected = f.expected(s, i == 0)
		}
		fixes = append(fixes, fix)
	}
	return fixes
}

// again puts measuring once more before all else where a disturbance left a verdict of low confidence.
func again(v verdict.Verdict, fixes []record.Fix) []record.Fix {
	if v.Confidence != verdict.Low || !v.Disturbed() {
		return fixes
	}
	return append([]record.Fix{measureAgain(v.Limiter, remedy.Both)}, fixes...)
}

// measureAgain is to measure once more when an end is quiet.
func measureAgain(limiter verdict.Name, end remedy.End) record.Fix {
	return record.Fix{Limiter: limiter, Action: remedy.MeasureAgain, Scope: remedy.Nowhere, End: end,
		Settings: []plan.Setting{}, Source: "the evidence of this measurement"}
}

// expected is the goodput with a step: of a larger initial window by the round trips that it
// spares, of the first step by what limiting means; nil where nothing is known.
func (f *FixFacts) expected(s remedy.Step, first bool) *record.Expected {
	if f.GoodputBps <= 0 {
		return nil
	}
	if spared := f.sparedS(); s.Action == remedy.InitialWindow && spared > 0 && spared < f.DurationS {
		return &record.Expected{LowBps: f.GoodputBps, HighBps: f.GoodputBps * f.DurationS / (f.DurationS - spared)}
	}
	if !first {
		return nil
	}
	e := &record.Expected{LowBps: threshold.CauseFactor * f.GoodputBps, AtLeast: true}
	if f.PathBps > e.LowBps {
		e.HighBps = f.PathBps
		e.AtLeast = false
	}
	return e
}

// initialWindow is the number of segments to begin with; 0 where no more than usual is better.
func (f *FixFacts) initialWindow() int {
	return model.LargerInitialWindow(f.Bytes, f.PathBps, units.Seconds(f.RTTS), f.MSSBytes)
}

// sparedS is the time of the round trips that the larger initial window spares: slow start
// doubles the window each round trip (RFC 5681 section 3.1).
func (f *FixFacts) sparedS() float64 {
	rounds := func(initial int) float64 {
		return math.Ceil(math.Log2(float64(f.Bytes)/float64(initial*f.MSSBytes) + 1))
	}
	initial := f.initialWindow()
	if initial == 0 || f.RTTS <= 0 {
		return 0
	}
	return (rounds(model.InitialWindow) - rounds(initial)) * f.RTTS
}

// pacedShare of a policed rate keeps what is sent, retransmissions included, below it.
const pacedShare = 0.97

// policedBps is the rate that a policer lets through, in payload; 0 where none was seen.
func (f *FixFacts) policedBps(v verdict.Verdict) float64 {
	if v.Subtype != verdict.Policer {
		return 0
	}
	for _, e := range v.Evidence {
		if rate := e.Values["steady_bps"]; e.Code == verdict.PolicedRate && rate > 0 {
			return rate
		}
	}
	return f.GoodputBps
}

// fewStreams is how many connections at once the advice begins with.
const fewStreams = 4

// safeSegment fits any path of today's tunnels: 1280 bytes, IPv6's least MTU, less headers
// (RFC 8200 section 5), and smallestSegment any path at all (RFC 9293 section 3.7.1).
const safeSegment, smallestSegment = 1200, 536

// settings are a step's, as far as their values are known.
func (f *FixFacts) settings(s remedy.Step, v verdict.Verdict) []plan.Setting {
	role := plan.Sender
	if s.End == remedy.Receiver {
		role = plan.Receiver
	}
	one := func(name, where, value string) []plan.Setting {
		return []plan.Setting{{Role: role, Name: name, Where: where, Value: value, Source: s.Source}}
	}
	const sysctl, inProgram = "sysctl, every new connection of the host", "in the program, before connect() or listen()"
	const anyTime = "in the program"
	switch s.Action {
	case remedy.LargerWindows:
		if f.Windows != nil {
			return f.Windows
		}
	case remedy.WindowOfBDP:
		if f.PathBps > 0 && f.RTTS > 0 && f.MSSBytes > 0 {
			return one("TCP_WINDOW_CLAMP", anyTime, strconv.Itoa(model.Window(f.PathBps/8*f.RTTS, f.MSSBytes)))
		}
	case remedy.OtherControl:
		return one("TCP_CONGESTION", inProgram, f.otherControl())
	case remedy.PaceBelow:
		if rate := f.policedBps(v); rate > 0 {
			return one("SO_MAX_PACING_RATE", anyTime, strconv.Itoa(int(pacedShare*rate/8)))
		}
	case remedy.ParallelFlows:
		return one("connections at once", anyTime, strconv.Itoa(fewStreams))
	case remedy.SmallerSegment:
		if f.MSSBytes > 0 && f.MSSBytes <= safeSegment {
			return one("TCP_MAXSEG", inProgram, strconv.Itoa(smallestSegment))
		}
		return one("TCP_MAXSEG", inProgram, strconv.Itoa(safeSegment))
	case remedy.NoDelay:
		return one("TCP_NODELAY", inProgram, "1")
	case remedy.LowWater:
		return one("TCP_NOTSENT_LOWAT", anyTime, "131072")
	case remedy.InitialWindow:
		return f.initialWindows(s)
	case remedy.WindowScaling:
		return one("net.ipv4.tcp_window_scaling", sysctl, "1")
	case remedy.ProbeMTU:
		return one("net.ipv4.tcp_mtu_probing", sysctl, "1")
	case remedy.NoIdleRestart:
		return one("net.ipv4.tcp_slow_start_after_idle", sysctl, "0")
	case remedy.ForgetMetrics:
		return one("net.ipv4.tcp_no_metrics_save", sysctl, "1")
	case remedy.MarkCongestion:
		return one("net.ipv4.tcp_ecn", sysctl, "1")
	}
	return []plan.Setting{}
}

// otherControl is one that the sender does not use.
func (f *FixFacts) otherControl() string {
	if f.Congestion == "bbr" {
		return "cubic"
	}
	return "bbr"
}

func (f *FixFacts) initialWindows(s remedy.Step) []plan.Setting {
	segments := f.initialWindow()
	if segments == 0 {
		return []plan.Setting{}
	}
	const where = "of the route to the other end: ip route change"
	value := strconv.Itoa(segments)
	return []plan.Setting{{Role: plan.Sender, Name: "initcwnd", Where: where, Value: value, Source: s.Source},
		{Role: plan.Receiver, Name: "initrwnd", Where: where, Value: value, Source: s.Source}}
}

// factsOf are what a direction tells of itself.
func factsOf(d *record.Direction) FixFacts {
	f := FixFacts{GoodputBps: orZero(d.GoodputBps), DurationS: orZero(d.DurationS), RTTS: orZero(d.RTTMinS)}
	if d.Bytes != nil {
		f.Bytes = *d.Bytes
	}
	if d.MSSBytes != nil {
		f.MSSBytes = *d.MSSBytes
	}
	if len(d.Streams) > 0 {
		f.Congestion = d.Streams[0].Congestion
	}
	return f
}
