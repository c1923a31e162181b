package text

import (
	"fmt"
	"strings"

	"github.com/fullpipe-net/fullpipe/internal/units"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// figures prints an observation's values.
type figures verdict.Values

func (f figures) has(key string) bool     { _, ok := f[key]; return ok }
func (f figures) rate(key string) string  { return units.Rate(f[key]).String() }
func (f figures) size(key string) string  { return units.Size(f[key]).Exact() }
func (f figures) share(key string) string { return percent(f[key]) }
func (f figures) time(key string) string {
	return units.Time(units.Seconds(f[key]))
}

// took formats "97 % of the time".
func (f figures) took() string { return f.share("time_ratio") + " of the time" }

// hostLoad returns how busy the host was.
func (f figures) hostLoad() string {
	if f.has("host_ratio") {
		return "was " + f.share("host_ratio") + " busy"
	}
	return "did not report how busy it was"
}

// loaded formats the round trip under load and, if known, the empty path's.
func (f figures) loaded() string {
	return "round trip " + f.time("rtt_s") + f.known("rtt_base_s", ", %s when empty")
}

// roundTrip formats the round trip and, after it, the empty path's. It leaves out what is not known.
func (f figures) roundTrip(format, base string) string {
	if f["rtt_s"] <= 0 {
		return ""
	}
	return fmt.Sprintf(format, f.time("rtt_s")+f.known("rtt_base_s", base))
}

// known formats a time, "" where it is not known.
func (f figures) known(key, format string) string {
	if f[key] <= 0 {
		return ""
	}
	return fmt.Sprintf(format, f.time(key))
}

// losses formats the small share of retransmissions.
func (f figures) losses() string {
	if f["retransmitted_ratio"] == 0 {
		return "without loss"
	}
	return "with hardly any loss (" + f.share("retransmitted_ratio") + " retransmitted)"
}

func percent(share float64) string {
	if share < 0.01 && share > 0 {
		return fmt.Sprintf("%.2g %%", 100*share)
	}
	return fmt.Sprintf("%.0f %%", 100*share)
}

func fixedSentence(text string) func(figures) string { return func(figures) string { return text } }

func (f figures) alsoFull(window string) string {
	return fmt.Sprintf("%s also full (%s of the time), but its %s allow "+
		"%s", window, f.share("full_ratio"),
		f.size("window_bytes"), f.rate("allows_bps"))
}

// linkLeast formats the link's rate; "" if it was not measured.
func (f figures) linkLeast() string {
	if !f.has("link_least_bps") {
		return ""
	}
	return "; the link carries at least " + f.rate("link_least_bps")
}

// equalsBDP formats that a window and the path are both full.
func (f figures) equalsBDP(window string) string {
	full := fmt.Sprintf("the %s of %s was full %s and ", window, f.size("window_bytes"), f.took())
	came := fmt.Sprintf("over the empty path it allows %s, and %s came", f.rate("allows_bps"), f.rate("steady_bps"))
	if !f.has("even_ratio") {
		return fmt.Sprintf("%smay equal the BDP: %s (%s); so few segments are in flight that a small "+
			"gap between them is not seen: where one transfer with a larger window gains nothing, it is the link",
			full, came, f.loaded())
	}
	return fmt.Sprintf("%sequals the BDP: %s, without a gap that a larger one could fill and without a "+
		"queue that a faster link would take away (%s); neither alone gives a tenth more, so take both", full, came,
		f.loaded())
}

func formatEqualWindows(f figures) string {
	return fmt.Sprintf("at most %s were in flight; the receiver's window of %s and the send "+
		"buffer limit almost equally (%s): neither alone gives 10 %% more, so enlarge "+
		"both", f.size("outstanding_bytes"),
		f.size("window_bytes"), f.took())
}

// contradiction formats the verdict's figure and the bound that the other figures set.
func (f figures) contradiction() string {
	for _, one := range []struct {
		figure verdict.Figure
		text   string
		print  func(figures, string) string
	}{
		{verdict.FullLinkFigure, "a full link would have carried %s, and %s are the most that fit what was carried",
			figures.size},
		{verdict.WindowFigure, "the receive window over the least round trip allows %s, and %s is the bound by what came",
			figures.rate},
		{verdict.RTTFigure, "a round trip of %s on the empty path, and of %s under load", figures.time},
		{verdict.IdleFigure, "the network limited it %s of the time, but data was in flight at most %s of it",
			figures.share},
		{verdict.SlowStartFigure, "slow start took %s round trips, and %s are the most that it can", figures.count},
		{verdict.LossFigure, "%s segments are said to have been lost, and %s were retransmitted", figures.count},
		{verdict.LossRateFigure, "so few losses leave a congestion window that gives %s, and %s is the bound by what came",
			figures.rate},
	} {
		said := "said_" + string(one.figure)
		allowed := "allowed_" + string(one.figure)
		if f.has(said) {
			return fmt.Sprintf(one.text, one.print(f, said), one.print(f, allowed))
		}
	}
	return "a figure that this version does not know"
}

func (f figures) count(key string) string { return fmt.Sprintf("%.0f", f[key]) }

func formatKernelFieldsMissing(f figures) string {
	var missing []string
	for _, one := range []struct{ key, name string }{
		{"limit_clocks", "the rwnd-limited and sndbuf-limited times"}, {"unsent", "the unsent bytes"},
		{"receive_window", "the peer's window"}, {"rate", "the delivery rate"},
	} {
		if f.has(one.key) {
			missing = append(missing, one.name)
		}
	}
	return "this kernel does not report " + strings.Join(missing, ", ")
}

func formatNothingToSend(f figures) string {
	text := "the sending program had nothing to send " + f.took()
	if f.has("outstanding_bytes") {
		text = fmt.Sprintf("only %s, less than a segment, were in flight at a time: neither a "+
			"congestion window nor a full link limits that", f.size("outstanding_bytes"))
	}
	if f.has("paused_s") {
		text += fmt.Sprintf(" (it chose not to write for %s of %s)", f.time("paused_s"), f.time("total_s"))
	}
	if f.has("awaited_s") {
		text += fmt.Sprintf(" (it waited for the other program's answer for %s of %s)", f.time("awaited_s"),
			f.time("total_s"))
	}
	return text
}

func formatSendBufferFull(f figures) string {
	text := fmt.Sprintf("the send buffer has %s; one buffer per round trip of %s is %s",
		f.size("outstanding_bytes"), f.time("rtt_s"), f.rate("allows_bps"))
	if f.has("blocked_ratio") {
		text += "; the writer waited for space " + f.share("blocked_ratio") + " of the time"
	}
	text += f.linkLeast()
	if f.has("rule_bytes") {
		text += fmt.Sprintf("; rule in force: afd:%.0f", f["rule_bytes"])
	}
	return text
}

func formatQueuedLocally(f figures) string {
	lost := "nothing was lost"
	if f["retransmitted_ratio"] > 0 {
		lost = f.share("retransmitted_ratio") + " of the bytes were retransmitted"
	}
	return fmt.Sprintf("data waited unsent %s although the congestion window (%s) had room for more than was in flight "+
		"(%s) and %s: "+
		"this host's own queue limits it", f.took(), f.size("cwnd_bytes"), f.size("in_flight_bytes"), lost)
}

// pathRate formats the rate of a path: the best, or the mean if the best did not last.
func (f figures) pathRate() string {
	if f.has("mean_bps") {
		return f.rate("mean_bps") + " on average"
	}
	return f.rate("best_bps")
}

func formatCapturedFullLink(f figures) string {
	text := fmt.Sprintf("the path delivered its maximum, %s, %s", f.rate("best_bps"), f.took())
	if f.has("mean_bps") {
		text = fmt.Sprintf("the path was full %s, at %s", f.took(), f.pathRate())
	}
	if f.has("queue") {
		text += ", with a standing queue" + f.roundTrip(": the round trip was %s", ", %s when empty")
	} else {
		text += "; when the sender sent faster, no more arrived" + f.roundTrip(" (round trip "+
			"%s)", ", %s when empty")
	}
	if f.has("window_allows_bps") {
		text += "; the receiver's window was also full, but it allows " +
			"" + f.rate("window_allows_bps")
	}
	return text
}

func formatSpuriousRetransmissions(f figures) string {
	return fmt.Sprintf("%s of the bytes were retransmitted, and %s of these segments had arrived behind later ones: the "+
		"path reorders segments, and the sender takes that for loss (%s)", f.share("retransmitted_ratio"),
		f.share("needless_ratio"), f.loaded())
}

func formatLossAllTheTime(f figures) string {
	idle := ""
	if f.has("even_ratio") {
		idle = ", and the link is idle within each round trip"
	}
	return fmt.Sprintf("%s of the bytes were retransmitted, evenly over the transfer; the rate stays near "+
		"%s, %s of the highest lasting rate%s "+
		"(%s)", f.share("retransmitted_ratio"), f.rate("steady_bps"), f.share("best_ratio"), idle, f.loaded())
}
