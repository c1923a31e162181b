package record

import (
	"math"
	"strconv"
	"strings"

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
	Fix         []Fix              `json:"fix,omitempty"` // what to do: what was shown to help first
	Trials      []TuneTrial        `json:"trials"`
	Verdict     search.Verdict     `json:"verdict"`
	Reason      string             `json:"reason"`
	Chosen      *TuneChosen        `json:"chosen,omitempty"`
	Remedies    []TuneRemedy       `json:"remedies,omitempty"`
	After       *TuneMeasured      `json:"after,omitempty"`
	Gain        *TuneGain          `json:"gain,omitempty"`
	Goal        string             `json:"goal,omitempty"` // absent: throughput
	Delay       *TuneDelay         `json:"delay,omitempty"`
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
	// Name says in words what is changed.
	Name              string   `json:"name,omitempty"`
	CongestionControl string   `json:"congestion_control,omitempty"`
	Streams           *int     `json:"streams,omitempty"`
	PacingBps         *float64 `json:"pacing_bps,omitempty"`
	MSSBytes          *int     `json:"mss_bytes,omitempty"`
}

// TuneRemedy is a way to send that was measured in turn with another: with today's, or
// with what had been found before (Beside). The interval holds for all remedies and all
// looks at them together, 1 % one way.
type TuneRemedy struct {
	Name       string      `json:"name"`
	Beside     string      `json:"beside,omitempty"`
	Runs       int         `json:"runs"`
	GoodputBps float64     `json:"goodput_bps"`
	Factor     float64     `json:"factor"`
	CI95       *[2]float64 `json:"ci95,omitempty"`
}

// TuneGain is after over before.
type TuneGain struct {
	Factor float64     `json:"factor"`
	CI95   *[2]float64 `json:"ci95,omitempty"`
}

// TuneDelay is the mean round trip under load, before and with what was chosen, where the
// goal was latency.
type TuneDelay struct {
	BeforeS float64     `json:"before_s"`
	AfterS  float64     `json:"after_s"`
	Factor  float64     `json:"factor"`
	CI95    *[2]float64 `json:"ci95,omitempty"`
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
		out.Trials = append(out.Trials, TuneTrial{t.Reason, t.Automatic, t.Remedy, known(t.Asked), known(t.Effective),
			t.Clipped,
			t.Goodput, string(t.Limiter)})
	}
	for _, r := range d.Remedies {
		if math.IsNaN(r.Gain.Mid) {
			continue // its reference failed each time
		}
		remedy := TuneRemedy{Name: r.Name, Runs: r.Runs, GoodputBps: r.Goodput, Factor: r.Gain.Mid,
			CI95: bounds(r.Gain)}
		if r.Beside != (tune.Setup{}) {
			remedy.Beside = r.Beside.String()
		}
		out.Remedies = append(out.Remedies, remedy)
	}
	if d.After != nil {
		after := newTuneMeasured(d.After)
		out.After = &after
	}
	if d.Gain != nil && !math.IsNaN(d.Gain.Mid) {
		out.Gain = &TuneGain{d.Gain.Mid, bounds(*d.Gain)}
	}
	if d.Goal != tune.Throughput {
		out.Goal = string(d.Goal)
	}
	if d.Delay != nil {
		out.Delay = &TuneDelay{d.Delay.Before.Seconds(), d.Delay.After.Seconds(), d.Delay.Factor.Mid, bounds(d.Delay.Factor)}
	}
	if d.File != nil {
		out.File = &TuneFile{d.File.Bytes, d.File.Before.Seconds(), d.File.After.Seconds()}
	}
	switch {
	case d.Chosen != nil:
		c := d.Chosen
		out.Chosen = &TuneChosen{WindowBytes: known(c.Window), SendBufferBytes: known(c.SendBuffer),
			ReceiveBufferBytes: known(c.ReceiveBuffer), Shown: &d.Shown, Name: c.String(), CongestionControl: c.Congestion,
			Streams: known(c.Streams), MSSBytes: known(c.MSS)}
		if c.PacingBps > 0 {
			out.Chosen.PacingBps = rate(c.PacingBps)
		}
		out.Settings = settings(d, near, far)
	case d.Verdict == search.NoChange:
		out.Chosen = &TuneChosen{Automatic: true}
	}
	out.Fix = tuneFixes(d, &out)
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

// settings are what to set at both ends for the chosen setup.
func settings(d *tune.Direction, near, far *plan.Target) (all []TuneSetting) {
	nearRole, farRole := plan.Sender, plan.Receiver
	if d.Direction == transfer.Down {
		nearRole, farRole = farRole, nearRole
	}
	for _, end := range []struct {
		host   string
		target *plan.Target
		role   plan.Role
	}{{"near", near, nearRole}, {"far", far, farRole}} {
		if end.target != nil && d.Chosen.Window > 0 {
			for _, s := range plan.For(windowPath(d), *end.target, end.role) {
				all = append(all, TuneSetting{end.host, end.target.Name, s})
			}
		}
		switch {
		case end.role == plan.Sender:
			all = append(all, senderSettings(d.Chosen, end.host, end.target)...)
		case d.Chosen.Window > 0 && d.Chosen.ReceiveBuffer == 0 && d.Chosen.Clamp > 0:
			all = append(all, clampSetting(d.Chosen, end.host, end.target))
		}
	}
	return all
}

// windowPath is what the chosen window is planned for; where ceilings clipped it, what the
// path needs with them raised.
func windowPath(d *tune.Direction) plan.Path {
	window := d.Chosen.Window
	if d.Clipped {
		window = max(window, d.Path.Window)
	}
	return plan.Path{RateBps: d.Path.BottleneckBps, RTT: d.Path.RTT, Jitter: d.Path.Jitter, MSS: d.Path.MSS,
		ReceiveWindow: model.Window(float64(window), d.Path.MSS), SendBuffer: window}
}

// clampSetting holds a window below what automatic sizing would take.
func clampSetting(c *tune.Chosen, host string, target *plan.Target) TuneSetting {
	s := TuneSetting{Host: host, Setting: plan.Setting{Role: plan.Receiver, Name: "TCP_WINDOW_CLAMP",
		Value: strconv.Itoa(c.Clamp),
		Where: "in the program, on every connection", Unit: "bytes", Source: "tcp(7)", Confirmed: true}}
	if target != nil {
		s.Target = target.Name
	}
	return s
}

// senderSettings are what else than a window the sender is given, in the narrowest scope
// first: a program's sockets, a route, the host.
func senderSettings(c *tune.Chosen, host string, target *plan.Target) (all []TuneSetting) {
	system := ""
	if target != nil {
		system = target.Name
	}
	linux := strings.HasPrefix(system, "linux")
	add := func(name, value, where, source string) {
		all = append(all, TuneSetting{host, system, plan.Setting{Role: plan.Sender, Name: name, Value: value, Where: where,
			Source: source, Confirmed: true}})
	}
	if c.Congestion != "" {
		add("TCP_CONGESTION", c.Congestion, "in the program, before connect() or listen()", "tcp(7)")
		if linux {
			add("congctl", c.Congestion, "of the route to the far host: ip route change … congctl "+c.Congestion, "ip-route(8)")
			add("net.ipv4.tcp_congestion_control", c.Congestion, "sysctl, every new connection of the host", "tcp(7)")
		}
	}
	if c.Streams > 1 {
		add("connections at once", strconv.Itoa(c.Streams), "in the program; they also take that many shares from others "+
			"on the link",
			"RFC 2914 section 5.1")
	}
	if c.PacingBps > 0 {
		add("SO_MAX_PACING_RATE", strconv.FormatInt(int64(c.PacingBps/8), 10), "in the program, bytes a second", "socket(7)")
	}
	if c.MSS > 0 {
		add("TCP_MAXSEG", strconv.Itoa(c.MSS), "in the program, before connect() or listen()", "tcp(7)")
		if linux {
			add("advmss", strconv.Itoa(c.MSS), "of the route, at the receiving end too: ip route change … advmss", "ip-route(8)")
		}
	}
	return all
}
