package report

import (
	"math"

	"github.com/fullpipe-net/fullpipe/internal/model"
	"github.com/fullpipe-net/fullpipe/internal/plan"
	"github.com/fullpipe-net/fullpipe/internal/search"
	"github.com/fullpipe-net/fullpipe/internal/stats"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/tune"
)

// Tune is the object that `tune --json` prints.
type Tune struct {
	Header
	Peer       string          `json:"peer"`
	Near       *Host           `json:"near,omitempty"`
	Far        *Host           `json:"far,omitempty"`
	Directions []TuneDirection `json:"directions"`
	Applied    bool            `json:"applied"`
	ElapsedS   float64         `json:"elapsed_s"`
	BytesSent  int64           `json:"bytes_sent"`
	Error      *Failure        `json:"error,omitempty"`
}

// TuneDirection is one direction of the loop.
type TuneDirection struct {
	Direction   transfer.Direction `json:"direction"`
	Path        TunePath           `json:"path"`
	Before      TuneMeasured       `json:"before"`
	Trials      []TuneTrial        `json:"trials"`
	Verdict     search.Verdict     `json:"verdict"`
	Reason      string             `json:"reason"`
	Chosen      *TuneChosen        `json:"chosen,omitempty"`
	Remedies    []TuneRemedy       `json:"remedies,omitempty"`
	After       *TuneMeasured      `json:"after,omitempty"`
	Gain        *TuneGain          `json:"gain,omitempty"`
	File        *TuneFile          `json:"file,omitempty"`
	Settings    []TuneSetting      `json:"settings,omitempty"`
	Applied     *TuneApplied       `json:"applied,omitempty"`
	Warnings    []string           `json:"warnings,omitempty"`
	Interrupted bool               `json:"interrupted,omitempty"`
}

// TunePath is what was learned of the path.
type TunePath struct {
	RTTMinS       *float64 `json:"rtt_min_s,omitempty"`
	RTTLoadedS    *float64 `json:"rtt_loaded_s,omitempty"`
	JitterS       *float64 `json:"jitter_s,omitempty"`
	MSSBytes      *int     `json:"mss_bytes,omitempty"`
	PathMTUBytes  *int     `json:"path_mtu_bytes,omitempty"`
	WindowScale   *int     `json:"window_scale,omitempty"`
	BottleneckBps *float64 `json:"bottleneck_bps,omitempty"`
	CapacityBps   *float64 `json:"capacity_bps,omitempty"` // the same in payload
	AtLeast       bool     `json:"at_least,omitempty"`
	BDPBytes      *float64 `json:"bdp_bytes,omitempty"`
	WindowBytes   *int     `json:"window_bytes,omitempty"`
	Middlebox     []string `json:"middlebox,omitempty"`
}

// TuneMeasured is what repeated transfers gave: the typical one as `measure` has it,
// and the interval of them all.
type TuneMeasured struct {
	Direction
	MedianBps float64     `json:"median_bps"`
	CI95Bps   *[2]float64 `json:"ci95_bps,omitempty"`
	Runs      int         `json:"runs"`
}

// TuneTrial is one transfer.
type TuneTrial struct {
	Reason         string  `json:"reason"`
	Automatic      bool    `json:"automatic,omitempty"`
	Remedy         string  `json:"remedy,omitempty"`
	WindowBytes    *int    `json:"window_bytes,omitempty"` // asked
	EffectiveBytes *int    `json:"effective_bytes,omitempty"`
	Clipped        bool    `json:"clipped,omitempty"`
	GoodputBps     float64 `json:"goodput_bps"`
	Limiter        string  `json:"limiter"`
}

// TuneChosen is what the loop ends with; with Automatic nothing is to be set.
type TuneChosen struct {
	Automatic          bool  `json:"automatic"`
	WindowBytes        *int  `json:"window_bytes,omitempty"`
	SendBufferBytes    *int  `json:"send_buffer_bytes,omitempty"`
	ReceiveBufferBytes *int  `json:"receive_buffer_bytes,omitempty"`
	Shown              *bool `json:"shown,omitempty"`
}

// TuneRemedy is something else than a window that was tried.
type TuneRemedy struct {
	Name       string     `json:"name"`
	GoodputBps float64    `json:"goodput_bps"`
	Factor     float64    `json:"factor"`
	CI95       [2]float64 `json:"ci95"`
}

// TuneGain is after over before.
type TuneGain struct {
	Factor float64     `json:"factor"`
	CI95   *[2]float64 `json:"ci95,omitempty"`
}

// TuneFile is what a transfer of a stated size takes.
type TuneFile struct {
	Bytes   int64   `json:"bytes"`
	BeforeS float64 `json:"before_s"`
	AfterS  float64 `json:"after_s"`
}

// TuneSetting is a plan's setting and the host that it belongs to.
type TuneSetting struct {
	Host   string `json:"host"`   // near or far
	Target string `json:"target"` // the system, as plan names it
	plan.Setting
}

// NewTune describes what the loop found, with settings for the targets that are known.
func NewTune(h Header, peer string, r *tune.Result, near, far *plan.Target) *Tune {
	doc := &Tune{Header: h, Peer: peer, Near: NewHost(r.Near), Far: NewHost(r.Far), ElapsedS: r.Elapsed.Seconds(),
		BytesSent: r.Bytes, Directions: []TuneDirection{}}
	for i := range r.Directions {
		doc.Directions = append(doc.Directions, newTuneDirection(&r.Directions[i], near, far))
	}
	return doc
}

func newTuneDirection(d *tune.Direction, near, far *plan.Target) TuneDirection {
	out := TuneDirection{Direction: d.Direction, Path: newTunePath(&d.Path), Verdict: d.Verdict, Reason: d.Reason,
		Warnings: d.Warnings, Interrupted: d.Interrupted, Trials: []TuneTrial{}, Before: newTuneMeasured(&d.Before)}
	for _, t := range d.Trials {
		out.Trials = append(out.Trials, TuneTrial{t.Reason, t.Automatic, t.Remedy, known(t.Asked), known(t.Effective), t.Clipped,
			t.Goodput, string(t.Limiter)})
	}
	for _, r := range d.Remedies {
		out.Remedies = append(out.Remedies, TuneRemedy{r.Name, r.Goodput, r.Gain.Mid, [2]float64{r.Gain.Low, r.Gain.High}})
	}
	if d.After != nil {
		after := newTuneMeasured(d.After)
		out.After = &after
	}
	if d.Gain != nil && !math.IsNaN(d.Gain.Mid) {
		out.Gain = &TuneGain{d.Gain.Mid, bounds(*d.Gain)}
	}
	if d.File != nil {
		out.File = &TuneFile{d.File.Bytes, d.File.Before.Seconds(), d.File.After.Seconds()}
	}
	switch {
	case d.Chosen != nil:
		out.Chosen = &TuneChosen{WindowBytes: known(d.Chosen.Window), SendBufferBytes: known(d.Chosen.SendBuffer),
			ReceiveBufferBytes: known(d.Chosen.ReceiveBuffer), Shown: &d.Shown}
		out.Settings = settings(d, near, far)
	case d.Verdict == search.NoChange:
		out.Chosen = &TuneChosen{Automatic: true}
	}
	return out
}

func newTunePath(p *tune.Path) TunePath {
	out := TunePath{MSSBytes: known(p.MSS), PathMTUBytes: known(p.MTU), AtLeast: p.AtLeast, WindowBytes: known(p.Window),
		Middlebox: p.Middlebox}
	if p.RTT > 0 {
		out.RTTMinS, out.JitterS = seconds(p.RTT), seconds(p.Jitter)
	}
	if p.LoadedRTT > 0 {
		out.RTTLoadedS = seconds(p.LoadedRTT)
	}
	if p.Scale >= 0 {
		out.WindowScale = &p.Scale
	}
	if p.CapacityBps > 0 {
		out.BottleneckBps, out.CapacityBps, out.BDPBytes = rate(p.BottleneckBps), rate(p.CapacityBps), rate(p.BDPBytes)
	}
	return out
}

func newTuneMeasured(m *tune.Measured) TuneMeasured {
	out := TuneMeasured{MedianBps: m.Interval.Mid, CI95Bps: bounds(m.Interval), Runs: len(m.Goodputs)}
	if m.Typical != nil {
		out.Direction = NewDirection(m.Typical, m.Verdict, nil)
	}
	return out
}

// bounds are an interval's; nil where it has none.
func bounds(i stats.Interval) *[2]float64 {
	if math.IsInf(i.High, 0) || math.IsNaN(i.Mid) {
		return nil
	}
	return &[2]float64{i.Low, i.High}
}

// settings are what to set at both ends for the chosen window.
func settings(d *tune.Direction, near, far *plan.Target) (all []TuneSetting) {
	window := d.Chosen.Window
	if d.Clipped {
		window = max(window, d.Path.Window) // with the ceilings raised, what the path needs
	}
	path := plan.Path{RateBps: d.Path.BottleneckBps, RTT: d.Path.RTT, Jitter: d.Path.Jitter, MSS: d.Path.MSS,
		ReceiveWindow: model.Window(float64(window), d.Path.MSS), SendBuffer: window}
	nearRole, farRole := plan.Sender, plan.Receiver
	if d.Direction == transfer.Down {
		nearRole, farRole = farRole, nearRole
	}
	for _, end := range []struct {
		host   string
		target *plan.Target
		role   plan.Role
	}{{"near", near, nearRole}, {"far", far, farRole}} {
		if end.target == nil {
			continue
		}
		for _, s := range plan.For(path, *end.target, end.role) {
			all = append(all, TuneSetting{end.host, end.target.Name, s})
		}
	}
	return all
}
