package report

import (
	"fmt"
	"io"
	"strings"

	"github.com/fullpipe-net/fullpipe/internal/limiter"
	"github.com/fullpipe-net/fullpipe/internal/predict"
	"github.com/fullpipe-net/fullpipe/internal/units"
)

// Predict is the object that `predict --json` prints.
type Predict struct {
	Header
	Path        PredictPath    `json:"path"`
	Direction   string         `json:"direction"`
	Connections int            `json:"connections"`
	Goodput     PredictRange   `json:"goodput"`
	Limiter     limiter.Name   `json:"limiter"`
	Subtype     string         `json:"subtype,omitempty"`
	Sure        bool           `json:"sure"`
	Candidates  []limiter.Name `json:"candidates,omitempty"`
	GainFactor  float64        `json:"gain_factor,omitempty"` // what the goodput would be without the limiter
	Next        *PredictNext   `json:"next,omitempty"`
	Time        *PredictTimes  `json:"time,omitempty"`
	BDPBytes    int64          `json:"bdp_bytes,omitempty"`
	// WindowBytes and InFlightBytes are what the receiver and the sender allow each
	// connection; absent where nothing bounds it.
	WindowBytes   int          `json:"window_bytes,omitempty"`
	InFlightBytes int          `json:"in_flight_bytes,omitempty"`
	Caps          []PredictCap `json:"caps"`
	Warnings      []string     `json:"warnings"`
}

// PredictPath is the path that was asked about.
type PredictPath struct {
	Text    string  `json:"text"`
	RateBps float64 `json:"rate_bps,omitempty"`
	RTTS    float64 `json:"rtt_s"`
}

// PredictRange is a goodput: the middle and where it will lie nine times in ten.
type PredictRange struct {
	LowBps     float64 `json:"low_bps"`
	TypicalBps float64 `json:"typical_bps"`
	HighBps    float64 `json:"high_bps"`
}

// PredictTimes is how long the stated bytes take.
type PredictTimes struct {
	LowS     float64 `json:"low_s"`
	TypicalS float64 `json:"typical_s"`
	HighS    float64 `json:"high_s"`
}

// PredictNext is what would limit without the limiter.
type PredictNext struct {
	Limiter limiter.Name `json:"limiter,omitempty"`
	PredictRange
}

// PredictCap is one formula's bound.
type PredictCap struct {
	Limiter limiter.Name `json:"limiter"`
	Bps     float64      `json:"goodput_bps"`
	Text    string       `json:"text"`
}

// SetAnswer fills in what was predicted.
func (d *Predict) SetAnswer(a *predict.Answer) {
	d.Goodput = PredictRange{a.Low, a.Typical, a.High}
	d.Limiter, d.Subtype, d.Sure, d.GainFactor = a.Limiter, a.Subtype, a.Sure, a.Gain
	if a.Next != nil {
		d.Next = &PredictNext{a.Next.Limiter, PredictRange{a.Next.Low, a.Next.Typical, a.Next.High}}
	}
	if a.Time.Typical > 0 {
		d.Time = &PredictTimes{a.Time.Low.Seconds(), a.Time.Typical.Seconds(), a.Time.High.Seconds()}
	}
	d.Candidates = a.Candidates
	d.BDPBytes, d.WindowBytes, d.InFlightBytes = int64(a.BDP), a.Window, a.SendBytes
	d.Caps, d.Warnings = []PredictCap{}, append([]string{}, a.Warnings...)
	for _, c := range a.Caps {
		d.Caps = append(d.Caps, PredictCap{c.Limiter, c.Bps, c.Text})
	}
}

// WriteText prints the prediction for a person.
func (d *Predict) WriteText(w io.Writer) {
	t := newTable()
	t.row("path", d.Path.Text)
	t.row("goodput", d.Goodput.text())
	t.row("limited by", d.limiterText())
	if d.Time != nil {
		t.row("time", fmt.Sprintf("%s, %s to %s", secondsText(d.Time.TypicalS), secondsText(d.Time.LowS), secondsText(d.Time.HighS)))
	}
	if n := d.Next; n != nil {
		text := n.text()
		if n.Limiter != "" {
			text += ", limited by " + string(n.Limiter)
		}
		label := "without it"
		switch d.Limiter {
		case limiter.Bottleneck:
			label = "on twice the line"
		case limiter.Mixed:
			label = "without them"
		}
		t.row(label, text)
	}
	if d.BDPBytes > 0 {
		t.row("bandwidth-delay product", both(d.BDPBytes))
	}
	t.row("receive window", bound(d.WindowBytes))
	t.row("in flight at the sender", bound(d.InFlightBytes))
	for _, warning := range d.Warnings {
		t.row("note", warning)
	}
	t.write(w, "")
	if len(d.Caps) == 0 {
		return
	}
	fmt.Fprintln(w, "\nwhat each would allow alone")
	caps := newTable(1)
	for _, c := range d.Caps {
		caps.row(string(c.Limiter), units.Rate(c.Bps).String(), c.Text)
	}
	caps.write(w, "  ")
}

func (r PredictRange) text() string {
	return fmt.Sprintf("%s, %s to %s", units.Rate(r.TypicalBps), units.Rate(r.LowBps), units.Rate(r.HighBps))
}

func (d *Predict) limiterText() string {
	text := string(d.Limiter)
	if d.Subtype != "" {
		text += " (" + d.Subtype + ")"
	}
	names := make([]string, len(d.Candidates))
	for i, c := range d.Candidates {
		names[i] = string(c)
	}
	switch {
	case d.Limiter == limiter.Mixed && len(names) > 1:
		return text + ": " + strings.Join(names, ", ") + " together; none alone would give a tenth more"
	case d.Limiter == limiter.Mixed:
		return text + ": nothing alone would give a tenth more"
	case len(names) > 1:
		return text + ", not sure: " + strings.Join(names, " or ")
	case !d.Sure:
		return text + ", not sure"
	}
	return text
}

func bound(bytes int) string {
	if bytes == 0 {
		return "no bound"
	}
	return units.Size(bytes).Exact()
}
