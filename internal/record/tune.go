package record

import (
	"github.com/fullpipe-net/fullpipe/internal/advice"
	"github.com/fullpipe-net/fullpipe/internal/plan"
	"github.com/fullpipe-net/fullpipe/internal/search"
	"github.com/fullpipe-net/fullpipe/internal/stats"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/units"
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
	Fix         []advice.Fix       `json:"fix,omitempty"` // remedies, those that were shown to help first
	Trials      []TuneTrial        `json:"trials"`
	Verdict     search.Verdict     `json:"verdict"`
	Decision    *TuneDecision      `json:"decision,omitempty"` // absent in documents of older versions
	Reason      string             `json:"reason"`
	Chosen      *TuneChosen        `json:"chosen,omitempty"`
	Remedies    []TuneRemedy       `json:"remedies,omitempty"`
	After       *TuneMeasured      `json:"after,omitempty"`
	Gain        *TuneGain          `json:"gain,omitempty"`
	Goal        string             `json:"goal,omitempty"` // absent: throughput
	Delay       *TuneDelay         `json:"delay,omitempty"`
	Others      *TuneOthers        `json:"others,omitempty"`
	File        *TuneFile          `json:"file,omitempty"`
	Settings    []TuneSetting      `json:"settings,omitempty"`
	Applied     *TuneApplied       `json:"applied,omitempty"`
	Warnings    []string           `json:"warnings,omitempty"`
	Disturbed   *TuneDisturbed     `json:"disturbed,omitempty"`
	Interrupted bool               `json:"interrupted,omitempty"`
}

// TuneDecision has the strength and the basis of a verdict.
type TuneDecision struct {
	Strength search.Strength `json:"strength"`
	// ProbabilityRatio is the probability of the verdict; absent: not computed.
	ProbabilityRatio float64  `json:"probability_ratio,omitempty"`
	Tried            []string `json:"tried"` // ways to send other than the baseline
}

// IsLikely reports that the verdict is probable and not shown.
func (d *TuneDirection) IsLikely() bool {
	return d.Decision != nil && d.Decision.Strength == search.Likely
}

// TuneDisturbed is the disturbance that made the measurement useless for the path.
type TuneDisturbed struct {
	// NearStarved and FarStarved are the shares of the time in which the data thread of this host or of the far end
	// waited for a core (run-queue delay): the median of all runs. At most one of them is present.
	NearStarved *float64 `json:"near_starved_ratio,omitempty"`
	FarStarved  *float64 `json:"far_starved_ratio,omitempty"`
	HostBusy    *float64 `json:"host_busy_ratio,omitempty"` // share of that host's processors in use
	LateLab     bool     `json:"late_lab,omitempty"`        // the lab forwarded packets late
}

// End returns the end of a direction whose host was disturbed; both ends if only the lab was late.
func (d *TuneDisturbed) End(direction transfer.Direction) advice.End {
	switch {
	case d.NearStarved == nil && d.FarStarved == nil:
		return advice.Both
	case (d.NearStarved != nil) == (direction == transfer.Up):
		return advice.Sender
	}
	return advice.Receiver
}

// TunePath is the path as measured.
type TunePath struct {
	RTTMin        units.Duration  `json:"rtt_min_s,omitzero"`
	RTTLoaded     units.Duration  `json:"rtt_loaded_s,omitzero"`
	Jitter        *units.Duration `json:"jitter_s,omitempty"`
	MSSBytes      int             `json:"mss_bytes,omitempty"`
	PathMTUBytes  int             `json:"path_mtu_bytes,omitempty"`
	WindowScale   *int            `json:"window_scale,omitempty"`
	BottleneckBps float64         `json:"bottleneck_bps,omitempty"`
	CapacityBps   float64         `json:"capacity_bps,omitempty"` // the same in payload
	AtLeast       bool            `json:"at_least,omitempty"`
	BDPBytes      float64         `json:"bdp_bytes,omitempty"`
	WindowBytes   int             `json:"window_bytes,omitempty"`
	Middlebox     []string        `json:"middlebox,omitempty"`
}

// TuneMeasured is the result of repeated transfers: the typical one in the form of `measure`, and the confidence
// interval of all.
type TuneMeasured struct {
	Direction
	MedianBps float64     `json:"median_bps"`
	CI95Bps   *[2]float64 `json:"ci95_bps,omitempty"`
	Runs      int         `json:"runs"`
	// RetransmittedRatio is the median share of the bytes sent that were retransmitted; absent: not known.
	RetransmittedRatio *float64 `json:"retransmitted_ratio,omitempty"`
}

// TuneTrial is one transfer.
type TuneTrial struct {
	Reason         string  `json:"reason"`
	Automatic      bool    `json:"automatic,omitempty"`
	Remedy         string  `json:"remedy,omitempty"`
	WindowBytes    int     `json:"window_bytes,omitempty"` // requested
	EffectiveBytes int     `json:"effective_bytes,omitempty"`
	Clipped        bool    `json:"clipped,omitempty"`
	GoodputBps     float64 `json:"goodput_bps"`
	Limiter        string  `json:"limiter"`
	// RetransmittedRatio is the share of the bytes sent that were retransmitted; absent: not known.
	RetransmittedRatio *float64 `json:"retransmitted_ratio,omitempty"`
}

// TuneChosen is the final setup of the loop. With Automatic there is nothing to set.
type TuneChosen struct {
	Automatic          bool  `json:"automatic"`
	WindowBytes        int   `json:"window_bytes,omitempty"`
	SendBufferBytes    int   `json:"send_buffer_bytes,omitempty"`
	ReceiveBufferBytes int   `json:"receive_buffer_bytes,omitempty"`
	Shown              *bool `json:"shown,omitempty"`
	// Name describes the change.
	Name              string  `json:"name,omitempty"`
	CongestionControl string  `json:"congestion_control,omitempty"`
	Streams           int     `json:"streams,omitempty"`
	PacingBps         float64 `json:"pacing_bps,omitempty"`
	MSSBytes          int     `json:"mss_bytes,omitempty"`
}

// TuneRemedy is a candidate and its comparison with the baseline or with an earlier candidate (Reference), measured in
// alternating runs. The one-sided error of the intervals is 1 %, over all candidates and all interim looks together.
type TuneRemedy struct {
	Name      string `json:"name"`
	Reference string `json:"beside,omitempty"` // an earlier candidate; absent: the baseline
	Runs      int    `json:"runs"`
	// BaselineRuns is the number of baseline runs if it differs from Runs; 0: the same.
	BaselineRuns int     `json:"baseline_runs,omitempty"`
	GoodputBps   float64 `json:"goodput_bps"`
	TuneGain
	// OthersFactor is the goodput of a competing flow over its goodput against the reference, for the goal fair; Factor is
	// that of both flows' mean then.
	OthersFactor *float64 `json:"others_factor,omitempty"`
	// RetransmittedRatio is the share of the bytes sent that were retransmitted; absent: not known.
	RetransmittedRatio *float64 `json:"retransmitted_ratio,omitempty"`
}

// TuneGain is a value after a change over the value before.
type TuneGain struct {
	Factor float64     `json:"factor"`
	CI95   *[2]float64 `json:"ci95,omitempty"`
}

// NewGain returns an estimated factor as documents have it.
func NewGain(factor stats.Interval) TuneGain {
	return TuneGain{Factor: factor.Mid, CI95: factor.Bounds()}
}

// TuneDelay is the mean RTT under load before and after, for the goal latency.
type TuneDelay struct {
	Before units.Duration `json:"before_s"`
	After  units.Duration `json:"after_s"`
	TuneGain
}

// TuneOthers is the goodput of a competing flow on the link with the baseline and with the last candidate, for the goal
// fair.
type TuneOthers struct {
	BeforeBps float64 `json:"before_bps"`
	AfterBps  float64 `json:"after_bps"`
	TuneGain
}

// TuneFile is the time of a transfer of a given size.
type TuneFile struct {
	Bytes  int64          `json:"bytes"`
	Before units.Duration `json:"before_s"`
	After  units.Duration `json:"after_s"`
	// InitialWindow is the best initial window in segments, if slow start takes at least a tenth of the time.
	InitialWindow int `json:"initial_window_segments,omitempty"`
}

// SettingBy is the scope of a setting.
type SettingBy string

// The scopes, the widest first.
const (
	ByHost    SettingBy = "host"    // every new connection of the host
	ByRoute   SettingBy = "route"   // every new connection to one destination
	ByProgram SettingBy = "program" // sockets of a program that sets it
	ByStreams SettingBy = "streams" // several connections of a program, each as it is
)

// TuneSetting is a plan's setting and the host that it belongs to.
type TuneSetting struct {
	Host   string `json:"host"`   // near or far
	Target string `json:"target"` // the system, as plan names it
	// Recipe counts the settings that belong together, from 1: those of one recipe suffice. The
	// first one is what was measured. Absent in documents of older versions.
	Recipe int `json:"recipe,omitempty"`
	// Of is what the setting changes, By the scope of its recipe.
	Of advice.Action `json:"of,omitempty"`
	By SettingBy     `json:"by,omitempty"`
	plan.Setting
}
