package report

import (
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/fullpipe-net/fullpipe/internal/limiter"
	"github.com/fullpipe-net/fullpipe/internal/stats"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/units"
)

// Compare is the object that `measure --compare --json` prints.
type Compare struct {
	Header
	Peers       [2]string           `json:"peers"`
	Rounds      int                 `json:"rounds"` // of first, second, second, first
	Directions  []ComparedDirection `json:"directions"`
	Interrupted bool                `json:"interrupted,omitempty"`
	Error       *Failure            `json:"error,omitempty"`
}

// ComparedDirection is what both ways gave in one direction, and why they differ.
type ComparedDirection struct {
	Direction    transfer.Direction `json:"direction"`
	First        ComparedWay        `json:"first"`
	Second       ComparedWay        `json:"second"`
	Factor       *TuneGain          `json:"second_over_first,omitempty"`
	Slower       string             `json:"slower,omitempty"` // first or second; absent: no difference is shown
	Cause        limiter.Cause      `json:"cause"`
	Confidence   limiter.Confidence `json:"confidence"`
	Candidates   []limiter.Cause    `json:"candidates,omitempty"`
	Text         string             `json:"text"`
	Explanations []Explanation      `json:"explanations"`
}

// ComparedWay is one of the two ways, over all its transfers.
type ComparedWay struct {
	Peer          string      `json:"peer"`
	GoodputBps    *float64    `json:"goodput_bps,omitempty"`
	CI95Bps       *[2]float64 `json:"ci95_bps,omitempty"`
	GoodputsBps   []float64   `json:"goodputs_bps"`
	Limiters      []string    `json:"limiters"` // of each transfer
	MSSBytes      *int        `json:"mss_bytes,omitempty"`
	PathMTUBytes  *int        `json:"path_mtu_bytes,omitempty"`
	RTTMinS       *float64    `json:"rtt_min_s,omitempty"`
	RTTMeanS      *float64    `json:"rtt_mean_s,omitempty"`
	ResentRatio   *float64    `json:"retransmitted_ratio,omitempty"`
	WindowBytes   *int        `json:"window_bytes,omitempty"`
	InFlightBytes *int        `json:"in_flight_bytes,omitempty"`
	NearCPURatio  *float64    `json:"near_host_cpu_ratio,omitempty"`
	FarCPURatio   *float64    `json:"far_host_cpu_ratio,omitempty"`
}

// Explanation is one cause, and the factor that the slower way would give without it.
type Explanation struct {
	Cause      limiter.Cause `json:"cause"`
	FactorLow  float64       `json:"factor_low"`
	FactorHigh float64       `json:"factor_high"`
	Text       string        `json:"text"`
}

// NewComparedDirection compares two ways.
func NewComparedDirection(direction transfer.Direction, peers [2]string, sides [2]limiter.Side) ComparedDirection {
	d := limiter.Compare(sides[0], sides[1])
	out := ComparedDirection{Direction: direction, First: newWay(peers[0], &sides[0]), Second: newWay(peers[1], &sides[1]),
		Slower: [...]string{"", "first", "second"}[d.Slower], Cause: d.Cause, Confidence: d.Confidence,
		Candidates: d.Candidates, Text: d.Text, Explanations: []Explanation{}}
	if !math.IsNaN(d.Factor.Mid) {
		out.Factor = &TuneGain{d.Factor.Mid, bounds(d.Factor)}
	}
	for _, e := range d.Explanations {
		out.Explanations = append(out.Explanations, Explanation{e.Cause, e.Low, e.High, e.Text})
	}
	return out
}

func newWay(peer string, s *limiter.Side) ComparedWay {
	w := ComparedWay{Peer: peer, GoodputsBps: append([]float64{}, s.Goodputs...), Limiters: []string{}, MSSBytes: known(s.MSS), PathMTUBytes: known(s.PathMTU),
		WindowBytes: known(s.Window), InFlightBytes: known(s.InFlight), NearCPURatio: s.NearCPU, FarCPURatio: s.FarCPU}
	goodput := stats.Estimate(s.Goodputs, 0.95)
	w.GoodputBps = rate(goodput.Mid)
	if len(s.Goodputs) > 1 {
		w.CI95Bps = &[2]float64{goodput.Low, goodput.High}
	}
	for _, v := range s.Verdicts {
		w.Limiters = append(w.Limiters, string(v.Limiter))
	}
	if s.RTTMin > 0 {
		w.RTTMinS = seconds(s.RTTMin)
	}
	if s.RTTMean > 0 {
		w.RTTMeanS = seconds(s.RTTMean)
	}
	if ratio, ok := s.LossRatio(); ok {
		w.ResentRatio = &ratio
	}
	return w
}

// WriteText prints the comparison for a person.
func (c *Compare) WriteText(w io.Writer) {
	t := newTable()
	t.row("first", c.Peers[0])
	t.row("second", c.Peers[1])
	if c.Interrupted {
		t.row("interrupted", "these figures are of the part that was measured")
	}
	t.write(w, "")
	for i := range c.Directions {
		fmt.Fprintln(w)
		c.Directions[i].writeText(w)
	}
}

func (d *ComparedDirection) writeText(w io.Writer) {
	fmt.Fprintf(w, "%s, %d and %d transfers in turn\n", Heading(d.Direction), len(d.First.GoodputsBps), len(d.Second.GoodputsBps))
	t := newTable(1, 2)
	t.row("", "first", "second")
	for _, line := range []struct {
		name string
		cell func(*ComparedWay) string
	}{
		{"goodput", (*ComparedWay).goodputText},
		{"95 % interval", (*ComparedWay).intervalText},
		{"limited by", (*ComparedWay).limiterText},
		{"segment", func(w *ComparedWay) string { return bytesText(w.MSSBytes) }},
		{"path MTU", func(w *ComparedWay) string { return bytesText(w.PathMTUBytes) }},
		{"least round trip", func(w *ComparedWay) string { return timeText(w.RTTMinS) }},
		{"mean round trip", func(w *ComparedWay) string { return timeText(w.RTTMeanS) }},
		{"sent again", func(w *ComparedWay) string { return shareText(w.ResentRatio, "%.2g %%") }},
		{"near host busy", func(w *ComparedWay) string { return shareText(w.NearCPURatio, "%.0f %%") }},
		{"far host busy", func(w *ComparedWay) string { return shareText(w.FarCPURatio, "%.0f %%") }},
	} {
		t.row(line.name, line.cell(&d.First), line.cell(&d.Second))
	}
	t.write(w, "  ")
	fmt.Fprintln(w)
	v := newTable()
	if d.Factor != nil {
		text := "× " + factor(d.Factor.Factor)
		if d.Factor.CI95 != nil {
			text += fmt.Sprintf("   (× %s to × %s with 95 %% confidence, measured in turn)", factor(d.Factor.CI95[0]), factor(d.Factor.CI95[1]))
		}
		v.row("second over first", text)
	}
	v.row("because of", d.causeText())
	v.row("", d.Text)
	for _, e := range d.Explanations {
		v.row("  "+string(e.Cause), fmt.Sprintf("× %s to × %s: %s", factor(e.FactorLow), factor(e.FactorHigh), e.Text))
	}
	v.write(w, "  ")
}

func (d *ComparedDirection) causeText() string {
	text := string(d.Cause)
	if len(d.Candidates) > 0 {
		names := make([]string, len(d.Candidates))
		for i, c := range d.Candidates {
			names[i] = string(c)
		}
		text += ": " + strings.Join(names, " or ")
	}
	return text + ", " + string(d.Confidence) + " confidence"
}

const notKnown = "not known"

func (w *ComparedWay) goodputText() string {
	if w.GoodputBps == nil {
		return notKnown
	}
	return units.Rate(*w.GoodputBps).String()
}

func (w *ComparedWay) intervalText() string {
	if w.CI95Bps == nil {
		return notKnown
	}
	return fmt.Sprintf("%s to %s", units.Rate(w.CI95Bps[0]), units.Rate(w.CI95Bps[1]))
}

// limiterText names each limiter once, the most frequent first.
func (w *ComparedWay) limiterText() string {
	shares := limiter.Shares{}
	for _, name := range w.Limiters {
		shares[limiter.Name(name)]++
	}
	var names []string
	for _, name := range shares.Top() {
		names = append(names, string(name))
	}
	if len(names) == 0 {
		return notKnown
	}
	return strings.Join(names, ", ")
}

func bytesText(v *int) string {
	if v == nil {
		return notKnown
	}
	return fmt.Sprintf("%d bytes", *v)
}

func timeText(v *float64) string {
	if v == nil {
		return notKnown
	}
	return secondsText(*v)
}

func shareText(v *float64, format string) string {
	if v == nil {
		return notKnown
	}
	return fmt.Sprintf(format, 100**v)
}
