package text

import (
	"fmt"
	"strings"

	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/rfc6349"
	"github.com/fullpipe-net/fullpipe/internal/units"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// RFC6349Warnings formats the warnings of the test.
func RFC6349Warnings(all []rfc6349.Statement) (lines []string) {
	for i := range all {
		lines = append(lines, RFC6349Sentence(&all[i]))
	}
	return lines
}

// FillRFC6349 writes the sentences of a document.
func FillRFC6349(r *record.RFC6349) {
	fill := func(all ...*rfc6349.Statement) {
		for _, s := range all {
			s.Text = RFC6349Sentence(s)
		}
	}
	fill(&r.Path.MTUMethod, &r.Path.RTTMethod)
	for i := range r.Directions {
		d := &r.Directions[i]
		fill(&d.Bottleneck.Method)
		for k := range d.Criteria {
			fill(&d.Criteria[k].Reason)
		}
		for k := range d.Tests {
			fill(&d.Tests[k].Skipped)
		}
		for k := range d.Frames {
			fill(&d.Frames[k].Reason)
		}
	}
}

// RFC6349Sentence formats a statement of the test; the zero statement is "".
func RFC6349Sentence(s *rfc6349.Statement) string {
	if s == nil || s.Code == "" {
		return ""
	}
	row := rfc6349Sentences[s.Code]
	var args []any
	for _, name := range row[1:] {
		args = append(args, rfc6349Value(s, name))
	}
	return fmt.Sprintf(row[0], args...)
}

// rfc6349Value returns an argument of a sentence: one of these, or the number of that name.
func rfc6349Value(s *rfc6349.Statement, name string) any {
	switch name {
	case "because":
		return RFC6349Sentence(s.Because)
	case ": because":
		return strings.TrimSuffix(": "+RFC6349Sentence(s.Because), ": ")
	case "cause":
		return s.Cause
	case "direction":
		return s.Direction
	case "limiter":
		return string(s.Limiter) + verdict.Suffix(s.Subtype)
	case "names":
		return s.Names
	case "rate":
		return units.Rate(s.Values["bps"])
	case "mbps":
		return s.Values["bps"] / 1e6
	case "% bdp":
		return 100 * s.Values["bdp_ratio"]
	case "% retransmitted":
		return 100 * s.Values["retransmitted_ratio"]
	}
	return s.Values[name]
}

// rfc6349Sentences has a format for each code, with the names of its arguments.
var rfc6349Sentences = map[rfc6349.Code][]string{
	rfc6349.Refused:       {"%s", "cause"},
	rfc6349.BudgetSpent:   {"the budget was spent"},
	rfc6349.OneWayAtATime: {"this far end carries one direction at a time"},
	rfc6349.NoUDP:         {"this far end carries no UDP"},
	rfc6349.UDPFailed:     {"UDP cannot be had: %s", "cause"},
	rfc6349.FrameTooSmall: {"its headers leave %.0f bytes, a trial's counters need %.0f", "payload_bytes",
		"needed_bytes"},
	rfc6349.FrameExceedsMTU: {"a packet of %.0f bytes does not fit into the path's MTU of %.0f", "packet_bytes",
		"mtu_bytes"},

	rfc6349.MTUProbed:      {"probed"},
	rfc6349.MTUOfKernel:    {"TCP's own"},
	rfc6349.ByUDP:          {"UDP"},
	rfc6349.ByUDPUnsettled: {"UDP; the search did not end with one value"},
	rfc6349.ByTCP:          {"TCP, several connections: %s", "because"},
	rfc6349.ByKernel:       {"TCP's own minimum"},
	rfc6349.ByEcho:         {"%s", "cause"},
	rfc6349.EchoAbove:      {"from TCP; all values by %s are higher", "cause"},
	rfc6349.Assumed:        {"assumed"},

	rfc6349.NotMeasured:           {"not measured%s", ": because"},
	rfc6349.BottleneckNotMeasured: {"the bottleneck was not measured"},
	rfc6349.UDPTreatedWorse: {"UDP did not get more through, but TCP used %s: something on the " +
		"path limits UDP, or an end was too slow for it", "rate"},
	rfc6349.NoEndFound: {"the search with UDP did not find the line's maximum: a host could " +
		"not send faster, or no time was left"},

	rfc6349.LowerBoundOnly: {"only a lower bound is known: %s", "because"},
	rfc6349.LineTooNarrow:  {"the line carries less than the committed rate"},
	rfc6349.NotReached:     {"it was not reached"},
	rfc6349.DidNotRun:      {"it did not run: %s", "because"},
	rfc6349.RateInInterval: {"the required rate is within the confidence interval: more or " +
		"longer runs are needed to decide"},
	rfc6349.LineNarrower:      {"the line itself is narrower"},
	rfc6349.LimitedByEnd:      {"%s limited it, which is an end's and not the line's", "limiter"},
	rfc6349.FiguresContradict: {"its figures contradict each other or those of its test, and were removed"},
	rfc6349.LimiterUnknown:    {"its limiter is not known"},
	rfc6349.TooFewRuns:        {"too few runs for a verdict on the line: a longer --budget decides"},
	rfc6349.OtherNotMeasured:  {"the other direction was not measured"},
	rfc6349.AloneTooSlow: {"one connection alone did not reach the committed rate, " +
		"%s", "direction"},
	rfc6349.AcksDelayed: {"together the directions carry %.2f times what one does alone: they share no medium, but " +
		"each delays the other's acknowledgements, an effect of TCP", "factor"},
	rfc6349.SharedMedium: {"together the directions carry %.2f times what one does alone: they share one medium or one " +
		"device", "factor"},
	rfc6349.SharingUndecided: {"together the directions carry %.2f times what one does alone: more or longer runs " +
		"decide", "factor"},
	rfc6349.Limited:  {"limited by %s", "limiter"},
	rfc6349.LineFull: {"limited by %s: TCP fills what the line carries, and that is too little", "limiter"},
	rfc6349.LossWithoutQueue: {"limited by %s: %.2f %% of the bytes were retransmitted without a standing queue: loss " +
		"or policing", "limiter", "% retransmitted"},
	rfc6349.QueueWithoutLoss: {"limited by %s: the round trip grew and nothing was lost: a queue before a narrower link",
		"limiter"},
	rfc6349.QueueOverflow: {"limited by %s: a queue overflowed", "limiter"},
	rfc6349.EveryRun:      {"in every run"},
	rfc6349.SomeRuns:      {"some runs reach it and some do not"},

	rfc6349.FrameRateMet: {"%.0f of %.0f frames/s due", "per_s", "due_per_s"},
	rfc6349.FrameSenderLimit: {"%.0f of %.0f frames/s due: the sending host could send no more, the line may carry it",
		"per_s", "due_per_s"},
	rfc6349.FrameSearchUnfinished: {"%.0f of %.0f frames/s due: the search did not come to its end", "per_s", "due_per_s"},
	rfc6349.FrameLoss: {"%.0f of %.0f frames/s due: lost from %.0f frames/s on, while these hosts carried %.0f of " +
		"another size", "per_s", "due_per_s", "failed_per_s", "most_per_s"},
	rfc6349.FrameLimitUnknown: {"%.0f of %.0f frames/s due: the two ends do not show if a host's packet rate or the " +
		"line's is the limit", "per_s", "due_per_s"},

	rfc6349.UDPEndedEarly: {"%s: the search over UDP ended early: %s", "direction", "cause"},
	rfc6349.NoRTT: {"no end could measure the round trip: 1 ms is assumed, and windows and delays follow " +
		"from that"},
	rfc6349.HandshakeRewritten: {"the two ends disagree on %s: something on the path changes " +
		"the handshake", "names"},
	rfc6349.SegmentsVanish: {"TCP sends packets of %.0f bytes, and only %.0f get through: a router drops larger ones " +
		"without a word", "packet_bytes", "mtu_bytes"},
	rfc6349.NarrowerMTU: {"the path carries packets of %.0f bytes, less than its first link's %.0f", "mtu_bytes",
		"first_bytes"},

	rfc6349.FirstTransfer:     {"a first transfer"},
	rfc6349.ProbingPath:       {"asking the idle path for its round trip and MTU"},
	rfc6349.OfferingUDP:       {"bottleneck: UDP at %.4g Mbit/s", "mbps"},
	rfc6349.OfferingUDPLonger: {"bottleneck: UDP at %.4g Mbit/s for longer", "mbps"},
	rfc6349.FillingByTCP:      {"bottleneck: %.0f connections", "connections"},
	rfc6349.RunningAutomatic:  {"automatic sizing"},
	rfc6349.RunningWindow:     {"a window of %.0f %% of the BDP", "% bdp"},
	rfc6349.RunningSingle:     {"one connection, run %.0f of %.0f", "run", "runs"},
	rfc6349.RunningSeveral:    {"%.0f connections, run %.0f of %.0f", "connections", "run", "runs"},
	rfc6349.RunningBoth:       {"both directions at once, run %.0f of %.0f", "run", "runs"},
	rfc6349.RepeatingRun:      {"once more, to decide"},
	rfc6349.RepeatingBoth:     {"both directions at once, once more to decide"},
	rfc6349.OfferingFrames:    {"frames of %.0f bytes at %.4g frames/s", "frame_bytes", "per_s"},
}
