package report

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/model"
	"github.com/fullpipe-net/fullpipe/internal/plan"
	"github.com/fullpipe-net/fullpipe/internal/units"
)

// Plan is the object that `plan --json` prints, and the file that apply reads.
type Plan struct {
	Header
	Target             string         `json:"target,omitempty"`
	Role               plan.Role      `json:"role,omitempty"`
	RateBps            float64        `json:"rate_bps,omitempty"`
	RTTS               float64        `json:"rtt_s,omitempty"`
	JitterS            float64        `json:"jitter_s,omitempty"`
	MSSBytes           int            `json:"mss_bytes,omitempty"`
	Connections        int            `json:"connections,omitempty"`
	BDPBytes           int64          `json:"bdp_bytes,omitempty"`
	LargeWindows       *bool          `json:"large_windows,omitempty"`
	WindowScale        *int           `json:"window_scale,omitempty"`
	Segments           int            `json:"segments,omitempty"`
	ReceiveWindowBytes int            `json:"receive_window_bytes,omitempty"`
	SendBufferBytes    int            `json:"send_buffer_bytes,omitempty"`
	MemoryBytes        int64          `json:"memory_bytes,omitempty"`
	Route              *PlanRoute     `json:"route,omitempty"`
	SharedWindowBytes  int            `json:"shared_window_bytes,omitempty"`
	Paths              []PlanShared   `json:"paths,omitempty"`
	Settings           []plan.Setting `json:"settings"`
	Warnings           []string       `json:"warnings"`
	Notes              []string       `json:"notes,omitempty"`
	Window             *WindowAnswer  `json:"window,omitempty"`
}

// PlanRoute is the destination that a plan is narrowed to.
type PlanRoute struct {
	Prefix string `json:"prefix"`
	Via    string `json:"via,omitempty"`
	Dev    string `json:"dev,omitempty"`
}

// PlanShared is what one window for several paths gives on one of them.
type PlanShared struct {
	RateBps      float64 `json:"rate_bps"`
	RTTS         float64 `json:"rtt_s"`
	WindowBytes  int     `json:"window_bytes"` // that it alone would want
	GoodputRatio float64 `json:"goodput_ratio"`
	FullRTTS     float64 `json:"full_rtt_s"` // with what is too much of the window in its queue
	// What the one window costs on this path: the share of its rate that is lost, the delay
	// that is added, the memory of each connection that is of no use.
	LostRatio   float64 `json:"lost_goodput_ratio"`
	AddedDelayS float64 `json:"added_delay_s"`
	MemoryBytes int     `json:"unused_memory_bytes"`
}

// WindowAnswer says what a stated window does: the longest round trip at which it fills
// the stated rate, and the rate that it allows at the stated round trip.
type WindowAnswer struct {
	WindowBytes    int     `json:"window_bytes"`
	WindowScale    int     `json:"window_scale"`
	ToleratedRTTS  float64 `json:"tolerated_rtt_s,omitempty"`
	AllowedRateBps float64 `json:"allowed_rate_bps,omitempty"`
}

// NewPlan is a plan as users read it.
func NewPlan(header Header, p *plan.Plan) *Plan {
	doc := &Plan{Header: header, Target: p.Target, Role: p.Role, RateBps: p.Path.RateBps, RTTS: p.Path.RTT.Seconds(),
		JitterS: p.Path.Jitter.Seconds(), MSSBytes: p.Path.MSS, Connections: p.Path.Connections,
		BDPBytes: int64(math.Round(math.Min(p.BDPBytes, 1<<62))), LargeWindows: &p.LargeWindows, WindowScale: &p.WindowScale,
		Segments: p.Segments, ReceiveWindowBytes: p.WindowBytes, SendBufferBytes: p.SendBytes, MemoryBytes: p.MemoryBytes,
		Settings: p.Settings, Warnings: p.Warnings, Notes: p.Notes, SharedWindowBytes: p.SharedWindow}
	if p.Route.Prefix != "" {
		doc.Route = &PlanRoute{p.Route.Prefix, p.Route.Via, p.Route.Dev}
	}
	for _, s := range p.Shared {
		doc.Paths = append(doc.Paths, PlanShared{s.RateBps, s.RTT.Seconds(), s.Window, s.Goodput, s.Full.Seconds(),
			1 - s.Goodput, s.Delay.Seconds(), s.Memory})
	}
	if doc.Settings == nil {
		doc.Settings = []plan.Setting{}
	}
	if doc.Warnings == nil {
		doc.Warnings = []string{}
	}
	return doc
}

// WriteText prints the plan for a person.
func (d *Plan) WriteText(w io.Writer) {
	if d.RateBps > 0 && d.RTTS > 0 && d.MSSBytes > 0 {
		d.writeSizes(w)
	}
	d.writeShared(w)
	if d.Window != nil {
		d.Window.writeText(w, d.RateBps, d.RTTS)
	}
	if d.Target == "" {
		return
	}
	fmt.Fprintf(w, "\nsettings of %s\n", d.Target)
	WriteSettings(w, d.Settings)
	for _, text := range d.Warnings {
		fmt.Fprintln(w, hanging("  warning: ", text))
	}
	for _, text := range d.Notes {
		fmt.Fprintln(w, hanging("  note: ", text))
	}
}

func (d *Plan) writeSizes(w io.Writer) {
	t := newTable()
	path := fmt.Sprintf("%s x %s", units.Rate(d.RateBps), secondsText(d.RTTS))
	if d.JitterS > 0 {
		path += ", " + secondsText(d.JitterS) + " of jitter"
	}
	t.row("path", path, fmt.Sprintf("MSS %d", d.MSSBytes))
	t.row("bandwidth-delay product", both(d.BDPBytes), fmt.Sprintf("%.2f segments", float64(d.BDPBytes)/float64(d.MSSBytes)))
	t.row("receive window", units.Size(d.ReceiveWindowBytes).Exact(), fmt.Sprintf("%d x %d", d.Segments, d.MSSBytes))
	t.row("send buffer", units.Size(d.SendBufferBytes).Exact())
	if *d.LargeWindows {
		t.row("large windows", fmt.Sprintf("needed at both ends, scale %d", *d.WindowScale), "65,535 bytes allow "+
			units.Rate(model.Rate(model.MaxUnscaled, time.Duration((d.RTTS+d.JitterS)*float64(time.Second)))).String())
	} else {
		t.row("large windows", "not needed")
	}
	t.row("memory", both(d.MemoryBytes), fmt.Sprintf("%d connection%s, buffers full", d.Connections, plural(d.Connections)))
	t.write(w, "")
}

// writeShared shows how well one window suits each of several paths.
func (d *Plan) writeShared(w io.Writer) {
	if len(d.Paths) == 0 {
		return
	}
	fmt.Fprintf(w, "\none window of %s for all\n", units.Size(d.SharedWindowBytes).Exact())
	t := newTable()
	for _, p := range d.Paths {
		t.row(fmt.Sprintf("%s x %s", units.Rate(p.RateBps), secondsText(p.RTTS)), "wants "+units.Size(p.WindowBytes).String(),
			fmt.Sprintf("fills %.0f %%", 100*p.GoodputRatio), fmt.Sprintf("loses %.0f %%", 100*p.LostRatio),
			added(p.AddedDelayS), units.Size(p.MemoryBytes).String()+" of memory unused")
	}
	t.write(w, "  ")
}

func added(delayS float64) string {
	if delayS <= 0 {
		return "adds no delay"
	}
	return "adds " + secondsText(delayS) + " of delay"
}

func (a *WindowAnswer) writeText(w io.Writer, rateBps, rttS float64) {
	window := units.Size(a.WindowBytes).Exact()
	if a.ToleratedRTTS > 0 {
		fmt.Fprintf(w, "a window of %s fills %s up to a round trip of %s\n", window, units.Rate(rateBps), secondsText(a.ToleratedRTTS))
	}
	if a.AllowedRateBps > 0 {
		fmt.Fprintf(w, "a window of %s allows %s at a round trip of %s\n", window, units.Rate(a.AllowedRateBps), secondsText(rttS))
	}
}

// WriteSettings prints settings in aligned columns.
func WriteSettings(w io.Writer, settings []plan.Setting) {
	if len(settings) == 0 {
		fmt.Fprintln(w, "  nothing to change")
		return
	}
	t := newTable()
	for _, s := range settings {
		value := s.Value
		if s.Before != "" {
			value = s.Before + " -> " + value
		}
		var remarks []string
		if s.Restart {
			remarks = append(remarks, "after a restart")
		}
		if !s.Confirmed {
			remarks = append(remarks, "not confirmed by a primary source")
		}
		t.row(string(s.Role), s.Name, value, strings.Join(remarks, ", "))
	}
	t.write(w, "  ")
	for i, s := range settings {
		earlier := slices.ContainsFunc(settings[:i], func(o plan.Setting) bool { return o.Where == s.Where })
		if earlier || !strings.HasPrefix(s.Where, "HKEY_") {
			continue
		}
		var names []string
		for _, o := range settings[i:] {
			if o.Where == s.Where {
				names = append(names, o.Name)
			}
		}
		fmt.Fprintf(w, "  in %s: %s\n", s.Where, strings.Join(names, ", "))
	}
}

// both prints a size in the two units that people mix up.
func both(bytes int64) string {
	if bytes < 10000 {
		return units.Size(bytes).Exact()
	}
	kB := strings.TrimSuffix(strings.TrimRight(strconv.FormatFloat(float64(bytes)/1000, 'f', 2, 64), "0"), ".")
	unit := "kB"
	if bytes >= 10e6 {
		kB, unit = strconv.FormatFloat(float64(bytes)/1e6, 'f', 1, 64), "MB"
	}
	return fmt.Sprintf("%s %s = %s", kB, unit, tenths(bytes))
}

// tenths prints a binary unit with one decimal: "164.8 KiB".
func tenths(bytes int64) string {
	v, unit := float64(bytes)/1024, "KiB"
	for _, next := range []string{"MiB", "GiB", "TiB"} {
		if v >= 1024 {
			v, unit = v/1024, next
		}
	}
	return strconv.FormatFloat(v, 'f', 1, 64) + " " + unit
}

// hanging wraps text after a label and lines its further lines up.
func hanging(label, text string) string {
	blank := strings.Repeat(" ", len(label))
	return label + strings.TrimPrefix(indent(text, blank, pageWidth), blank)
}

func plural(n int) string {
	if n == 1 {
		return ""
	}
	return "s"
}
