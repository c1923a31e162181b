package record

import (
	"cmp"
	_ "embed"
	"slices"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/flow"
	"github.com/fullpipe-net/fullpipe/internal/remedy"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// RFC6349 is the object that `rfc6349 --json` prints, and what its page is made of.
type RFC6349 struct {
	Header
	Peer        string              `json:"peer"`
	Reference   string              `json:"reference,omitempty"` // what the user calls the line
	EndedAt     time.Time           `json:"ended_at"`
	Near        *Host               `json:"near,omitempty"`
	Far         *Host               `json:"far,omitempty"`
	Verdict     string              `json:"verdict"` // pass, fail, inconclusive or not-judged
	Interrupted bool                `json:"interrupted,omitempty"`
	Committed   *CommittedRates     `json:"committed,omitempty"`
	Path        RFC6349Path         `json:"path"`
	Directions  []RFC6349Direction  `json:"directions"`
	Formulas    []Formula           `json:"formulas"`
	RunS        float64             `json:"run_s,omitempty"` // length of each TCP run
	FrameSearch *RFC6349FrameSearch `json:"frame_search,omitempty"`
	ElapsedS    float64             `json:"elapsed_s"`
	BytesSent   int64               `json:"bytes_sent"`
	Warnings    []string            `json:"warnings,omitempty"`
	Error       *Failure            `json:"error,omitempty"`
}

// CommittedRates are what the line is held to.
type CommittedRates struct {
	UpBps          *float64 `json:"up_bps,omitempty"`
	DownBps        *float64 `json:"down_bps,omitempty"`
	OverheadBytes  int      `json:"overhead_bytes"` // of framing that these rates count for each packet
	ToleranceRatio float64  `json:"tolerance_ratio"`
}

// RFC6349Path is what the idle path told.
type RFC6349Path struct {
	MTUBytes      *int     `json:"path_mtu_bytes,omitempty"`
	MTUMethod     string   `json:"path_mtu_method,omitempty"`
	FirstMTUBytes *int     `json:"first_link_mtu_bytes,omitempty"`
	RTTMinS       *float64 `json:"rtt_min_s,omitempty"`
	RTTMethod     string   `json:"rtt_method,omitempty"`
	RTTSamples    *int     `json:"rtt_samples,omitempty"`
	JitterS       *float64 `json:"jitter_s,omitempty"`
	MSSBytes      *int     `json:"mss_bytes,omitempty"`
	HeaderBytes   *int     `json:"ip_and_tcp_header_bytes,omitempty"`
	Timestamps    bool     `json:"timestamps"`
	IPv6          bool     `json:"ipv6,omitempty"`
}

// RFC6349Direction is one direction's tests and its sign-off.
type RFC6349Direction struct {
	Direction        transfer.Direction `json:"direction"`
	Verdict          string             `json:"verdict"` // as the whole
	Criteria         []RFC6349Criterion `json:"criteria,omitempty"`
	Bottleneck       *RFC6349Bottleneck `json:"bottleneck,omitempty"`
	MaxTCPBps        *float64           `json:"max_tcp_bps,omitempty"`
	MaxBesideAcksBps *float64           `json:"max_tcp_beside_acks_bps,omitempty"`
	BDPBytes         *float64           `json:"bdp_bytes,omitempty"`
	Tests            []RFC6349Test      `json:"tests"`
	Fix              []remedy.Fix       `json:"fix,omitempty"` // about what limits one connection
	Frames           []RFC6349Frame     `json:"frames,omitempty"`
	CommittedBps     *float64           `json:"committed_bps,omitempty"` // with the framing that the committed rate counts
	RTTMinS          *float64           `json:"rtt_min_s,omitempty"`     // of the idle path
	// Course and RoundTrips are of the run that stands for one connection with a window that
	// suffices: what arrived in bit/s, and mean round trips in nanoseconds, over time.
	Course     []flow.Point `json:"-"`
	RoundTrips []flow.Point `json:"-"`
}

// RFC6349FrameSearch is how frame sizes are searched.
type RFC6349FrameSearch struct {
	TrialS    float64 `json:"trial_s"`
	LossRatio float64 `json:"allowed_loss_ratio"`
}

// RFC6349Criterion is one thing that the sign-off asks.
type RFC6349Criterion struct {
	Name     string      `json:"name"`
	Verdict  string      `json:"verdict"`
	Unit     string      `json:"unit"` // of the following: "bps" or "ratio"
	Due      float64     `json:"due"`
	Required float64     `json:"required"`
	Measured *float64    `json:"measured,omitempty"`
	CI95     *[2]float64 `json:"ci95,omitempty"`
	Reason   string      `json:"reason,omitempty"`
}

// RFC6349Bottleneck is the bandwidth of one direction at the IP layer.
type RFC6349Bottleneck struct {
	Bps     float64         `json:"ip_bps"`
	Range   [2]float64      `json:"range_bps"`
	AtLeast bool            `json:"at_least"`
	Method  string          `json:"method"`
	Burst   *int64          `json:"burst_bytes,omitempty"` // got through beyond that rate
	Trials  []CapacityTrial `json:"trials,omitempty"`
}

// RFC6349Test is one test; its metrics are those of the run with the middle rate.
type RFC6349Test struct {
	Kind          string       `json:"kind"` // window, automatic, single, several or both
	Connections   int          `json:"connections"`
	WindowBytes   *int         `json:"window_bytes,omitempty"` // of each connection; absent: automatic
	BDPRatio      *float64     `json:"bdp_ratio,omitempty"`    // all connections together
	AchievableBps *float64     `json:"achievable_bps,omitempty"`
	GoodputBps    *float64     `json:"steady_goodput_bps,omitempty"`
	CI95Bps       *[2]float64  `json:"ci95_bps,omitempty"`
	Runs          []RFC6349Run `json:"runs"`
	Limiter       verdict.Name `json:"limiter,omitempty"`
	Subtype       string       `json:"subtype,omitempty"`
	Skipped       string       `json:"skipped,omitempty"`
}

// RFC6349Run is one transfer with everything that its metrics follow from.
type RFC6349Run struct {
	StartedAt        *time.Time   `json:"started_at,omitempty"`
	DurationS        float64      `json:"duration_s"`
	StartupS         float64      `json:"startup_s"`
	Bytes            int64        `json:"bytes"`
	GoodputBps       float64      `json:"goodput_bps"`
	SteadyBps        float64      `json:"steady_goodput_bps"`
	ReachedBytes     *int         `json:"in_flight_bytes,omitempty"`
	IdealS           float64      `json:"ideal_transfer_s"`
	TimeRatio        *float64     `json:"transfer_time_ratio,omitempty"`
	SteadyTimeRatio  *float64     `json:"steady_transfer_time_ratio,omitempty"`
	SentBytes        *int64       `json:"sent_bytes,omitempty"`
	Retransmitted    *int64       `json:"retransmitted_bytes,omitempty"`
	EfficiencyRatio  *float64     `json:"efficiency_ratio,omitempty"`
	RTTMeanS         *float64     `json:"rtt_mean_s,omitempty"`
	BufferDelayRatio *float64     `json:"buffer_delay_ratio,omitempty"`
	Limiter          verdict.Name `json:"limiter"`
}

// RFC6349Frame is the search for one frame size.
type RFC6349Frame struct {
	FrameBytes   int             `json:"frame_bytes"`
	FramesPerSec *float64        `json:"frames_per_s,omitempty"`
	Bps          *float64        `json:"frame_bps,omitempty"`
	LossRatio    *float64        `json:"loss_ratio,omitempty"`
	Due          *float64        `json:"due_frames_per_s,omitempty"`
	AtLeast      bool            `json:"at_least,omitempty"`
	Verdict      string          `json:"verdict"`
	Reason       string          `json:"reason,omitempty"`
	Trials       []CapacityTrial `json:"trials,omitempty"`
}

// Of are the formulas of a direction.
func (r *RFC6349) Of(d transfer.Direction) (all []Formula) {
	for _, f := range r.Formulas {
		if f.Direction == d {
			all = append(all, f)
		}
	}
	return all
}

// Typical is the run with the middle rate, whose metrics stand for the test; nil if there
// is none.
func (t *RFC6349Test) Typical() *RFC6349Run {
	if len(t.Runs) == 0 {
		return nil
	}
	order := make([]*RFC6349Run, len(t.Runs))
	for i := range t.Runs {
		order[i] = &t.Runs[i]
	}
	slices.SortStableFunc(order, func(a, b *RFC6349Run) int { return cmp.Compare(a.SteadyBps, b.SteadyBps) })
	return order[len(order)/2]
}

func (r *RFC6349) curves() (all []curve) {
	for i := range r.Directions {
		d := &r.Directions[i]
		of := place("/directions/%d", i)
		all = append(all, curve{of: of, name: "goodput_bps", points: &d.Course}, curve{of: of, name: "rtt",
			points: &d.RoundTrips})
	}
	return all
}
