package record

import (
	"cmp"
	"slices"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/advice"
	"github.com/fullpipe-net/fullpipe/internal/flow"
	"github.com/fullpipe-net/fullpipe/internal/search"
	"github.com/fullpipe-net/fullpipe/internal/stats"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/units"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// RFC6349 is the object that `rfc6349 --json` prints and the source of its HTML page.
type RFC6349 struct {
	Header
	Peer        string              `json:"peer"`
	Reference   string              `json:"reference,omitempty"` // the user's name of the line
	EndedAt     time.Time           `json:"ended_at"`
	Near        *Host               `json:"near,omitempty"`
	Far         *Host               `json:"far,omitempty"`
	Verdict     RFC6349Verdict      `json:"verdict"`
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

// CommittedRates are the rates that the provider guarantees.
type CommittedRates struct {
	UpBps          *float64 `json:"up_bps,omitempty"`
	DownBps        *float64 `json:"down_bps,omitempty"`
	OverheadBytes  int      `json:"overhead_bytes"` // of framing that these rates count for each packet
	ToleranceRatio float64  `json:"tolerance_ratio"`
}

// RFC6349Path is the idle path as measured (RFC 6349, sections 3.1 and 3.2.1). 0: not known.
type RFC6349Path struct {
	MTU       int              `json:"path_mtu_bytes,omitempty"`
	MTUMethod RFC6349Statement `json:"path_mtu_method,omitzero"`
	FirstMTU  int              `json:"first_link_mtu_bytes,omitempty"` // the MTU of the first link
	RTT       units.Duration   `json:"rtt_min_s,omitzero"`
	RTTMethod RFC6349Statement `json:"rtt_method,omitzero"`
	RTTCount  int              `json:"rtt_samples,omitempty"`
	Jitter    *units.Duration  `json:"jitter_s,omitempty"`
	MSS       int              `json:"mss_bytes,omitempty"`
	// Headers are the IP and TCP headers of each full segment, timestamps included.
	Headers    int  `json:"ip_and_tcp_header_bytes,omitempty"`
	Timestamps bool `json:"timestamps"`
	IPv6       bool `json:"ipv6,omitempty"`
}

// RFC6349Direction is one direction's tests and its sign-off.
type RFC6349Direction struct {
	Direction  transfer.Direction `json:"direction"`
	Verdict    RFC6349Verdict     `json:"verdict"` // of its criteria and frames
	Criteria   []RFC6349Criterion `json:"criteria,omitempty"`
	Bottleneck RFC6349Bottleneck  `json:"bottleneck,omitzero"`
	MaxTCPBps  float64            `json:"max_tcp_bps,omitempty"` // section 4.1.1
	// MaxBidirectionalBps is MaxTCPBps less the share that the acknowledgements of the other direction's data take; 0:
	// not tested.
	MaxBidirectionalBps float64        `json:"max_tcp_beside_acks_bps,omitempty"`
	BDPBytes            float64        `json:"bdp_bytes,omitempty"`
	Tests               []RFC6349Test  `json:"tests"`
	Fix                 []advice.Fix   `json:"fix,omitempty"` // about what limits one connection
	Frames              []RFC6349Frame `json:"frames,omitempty"`
	CommittedBps        float64        `json:"committed_bps,omitempty"` // with the framing that the committed rate counts
	RTT                 units.Duration `json:"rtt_min_s,omitzero"`      // of the idle path
	// ReferenceBps and ReferenceOverhead are the rate that MaxTCPBps follows from: the committed
	// one, else the bottleneck's.
	ReferenceBps      float64 `json:"-"`
	ReferenceOverhead int     `json:"-"`
	// Course and RoundTrips are the goodput in bit/s and the mean RTT in nanoseconds over time, of the typical run of one
	// connection with a sufficient window.
	Course     []flow.Point `json:"-"`
	RoundTrips []flow.Point `json:"-"`
}

// RFC6349FrameSearch is how frame sizes are searched.
type RFC6349FrameSearch struct {
	TrialS    float64 `json:"trial_s"`
	LossRatio float64 `json:"allowed_loss_ratio"`
}

// RFC6349Verdict of a sign-off and of each of its criteria.
type RFC6349Verdict string

// Verdicts.
const (
	RFC6349Pass         RFC6349Verdict = "pass"
	RFC6349Fail         RFC6349Verdict = "fail"
	RFC6349Inconclusive RFC6349Verdict = "inconclusive"
	RFC6349NotJudged    RFC6349Verdict = "not-judged" // nothing was committed to
)

// RFC6349Criterion is one requirement of the sign-off of a direction.
type RFC6349Criterion struct {
	Name     string           `json:"name"` // "bandwidth", an RFC6349Kind, "efficiency" or "buffer-delay"
	Verdict  RFC6349Verdict   `json:"verdict"`
	Unit     string           `json:"unit"`     // of the following: "bps" or "ratio"
	Due      float64          `json:"due"`      // the committed value
	Required float64          `json:"required"` // Due less the tolerance; a maximum for "buffer-delay"
	Measured *float64         `json:"measured,omitempty"`
	CI95     *[2]float64      `json:"ci95,omitempty"`
	Reason   RFC6349Statement `json:"reason,omitzero"`
}

// RFC6349Bottleneck is the bandwidth of one direction at the IP layer (section 3.2.2).
type RFC6349Bottleneck struct {
	Bps     float64          `json:"ip_bps"`
	Range   [2]float64       `json:"range_bps"`
	AtLeast bool             `json:"at_least"` // the hosts, not the path, set its end
	Method  RFC6349Statement `json:"method"`
	// BurstBytes passed beyond the rate at the start of a trial, or were counted after its end.
	BurstBytes int64                  `json:"burst_bytes,omitempty"`
	Trials     []search.CapacityTrial `json:"trials,omitempty"`
}

// IsZero reports whether the bottleneck was not measured.
func (b RFC6349Bottleneck) IsZero() bool { return b.Bps == 0 }

// RFC6349Kind names a TCP test: window, automatic, single, several or both.
type RFC6349Kind string

// RFC6349Test is one TCP test; its metrics are those of the run with the middle rate.
type RFC6349Test struct {
	Kind          RFC6349Kind        `json:"kind"`
	Connections   int                `json:"connections"`
	Window        int                `json:"window_bytes,omitempty"`   // requested for each connection; 0: automatic
	Share         float64            `json:"bdp_ratio,omitempty"`      // of the BDP, all connections; 0: automatic
	AchievableBps float64            `json:"achievable_bps,omitempty"` // by the window and the bottleneck
	GoodputBps    *float64           `json:"steady_goodput_bps,omitempty"`
	CI95Bps       *[2]float64        `json:"ci95_bps,omitempty"`
	Runs          []RFC6349Run       `json:"runs"`
	Limiter       verdict.Name       `json:"limiter,omitempty"`
	Subtype       string             `json:"subtype,omitempty"`
	Confidence    verdict.Confidence `json:"confidence,omitempty"` // absent in documents of earlier versions
	Skipped       RFC6349Statement   `json:"skipped,omitzero"`     // why it did not run
	Direction     transfer.Direction `json:"-"`
	Goodput       stats.Interval     `json:"-"` // in equilibrium, 95 %
}

// RFC6349Run is one transfer with everything that its metrics follow from.
type RFC6349Run struct {
	StartedAt      *time.Time     `json:"started_at,omitempty"`
	Duration       units.Duration `json:"duration_s"`
	Startup        units.Duration `json:"startup_s"` // before equilibrium (section 1.3)
	Bytes          int64          `json:"bytes"`
	GoodputBps     float64        `json:"goodput_bps"`               // first to last byte
	SteadyBps      float64        `json:"steady_goodput_bps"`        // in equilibrium
	InFlightBytes  int            `json:"in_flight_bytes,omitempty"` // window or bytes in flight, all connections together
	Ideal          units.Duration `json:"ideal_transfer_s"`
	TimeRatio      float64        `json:"transfer_time_ratio,omitempty"`        // of the whole run
	SteadyRatio    float64        `json:"steady_transfer_time_ratio,omitempty"` // in equilibrium
	*RFC6349Sender                // nil: not known
	RTTMean        units.Duration `json:"rtt_mean_s,omitzero"`
	BufferDelay    *float64       `json:"buffer_delay_ratio,omitempty"` // over an idle round trip
	Limiter        verdict.Name   `json:"limiter"`

	OpeningBytes int64               `json:"-"` // those of Bytes that had arrived when Duration began
	Verdict      verdict.Verdict     `json:"-"`
	Intervals    []transfer.Interval `json:"-"`
	RoundTrips   []flow.Point        `json:"-"` // the mean of each second's samples, since the first byte
}

// RFC6349Sender is what the sender's kernel counted.
type RFC6349Sender struct {
	SentBytes          int64   `json:"sent_bytes"`
	RetransmittedBytes int64   `json:"retransmitted_bytes"`
	Efficiency         float64 `json:"efficiency_ratio"`
}

// RFC6349Frame is the search for the largest rate of one frame size. Rates count whole frames,
// without preamble and gap.
type RFC6349Frame struct {
	FrameBytes    int                    `json:"frame_bytes"`
	FramesPerSec  float64                `json:"frames_per_s,omitempty"` // the highest within the allowed loss; 0: none
	Bps           float64                `json:"frame_bps,omitempty"`    // the same in bit/s of frames
	LossRatio     *float64               `json:"loss_ratio,omitempty"`   // at that rate
	Due           float64                `json:"due_frames_per_s,omitempty"`
	AtLeast       bool                   `json:"at_least,omitempty"` // the whole line's rate got through
	Verdict       RFC6349Verdict         `json:"verdict"`
	Reason        RFC6349Statement       `json:"reason,omitzero"`
	Trials        []search.CapacityTrial `json:"trials,omitempty"` // at the IP layer
	Skipped       RFC6349Statement       `json:"-"`
	SenderLimited bool                   `json:"-"`
	FailedPerSec  float64                `json:"-"` // the smallest rate that lost too much
}

// RFC6349Code names what a sentence states.
type RFC6349Code string

// RFC6349Statement is a code with the values of its sentence; the zero value states nothing. In
// JSON it is its Text.
type RFC6349Statement struct {
	Code      RFC6349Code
	Values    verdict.Values
	Direction transfer.Direction
	Limiter   verdict.Name
	Subtype   string            // of Limiter
	Names     []string          // options that the two ends understood differently
	Cause     string            // text of an error, or the method of a probe
	Because   *RFC6349Statement // the statement that this one rests on
	Text      string
}

// String returns the sentence.
func (s RFC6349Statement) String() string { return s.Text }

// IsZero reports whether the sentence is missing.
func (s RFC6349Statement) IsZero() bool { return s.Text == "" }

// MarshalText returns the sentence.
func (s RFC6349Statement) MarshalText() ([]byte, error) { return []byte(s.Text), nil }

// UnmarshalText reads the sentence.
func (s *RFC6349Statement) UnmarshalText(text []byte) error {
	*s = RFC6349Statement{Text: string(text)}
	return nil
}

// Of returns the formulas of a direction.
func (r *RFC6349) Of(d transfer.Direction) (all []Formula) {
	for _, f := range r.Formulas {
		if f.Direction == d {
			all = append(all, f)
		}
	}
	return all
}

// Typical returns the run with the median rate, nil without runs. Its metrics are the test's metrics.
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

// Find returns the direction's first test of a kind, or nil.
func (d *RFC6349Direction) Find(kind RFC6349Kind) *RFC6349Test {
	for i := range d.Tests {
		if d.Tests[i].Kind == kind {
			return &d.Tests[i]
		}
	}
	return nil
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
