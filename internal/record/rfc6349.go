package record

import (
	"cmp"
	_ "embed"
	"slices"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/flow"
	"github.com/fullpipe-net/fullpipe/internal/rfc6349"
	"github.com/fullpipe-net/fullpipe/internal/stats"
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
	Verdict     rfc6349.Verdict     `json:"verdict"`
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
	Verdict          rfc6349.Verdict    `json:"verdict"`
	Criteria         []RFC6349Criterion `json:"criteria,omitempty"`
	Bottleneck       *RFC6349Bottleneck `json:"bottleneck,omitempty"`
	MaxTCPBps        *float64           `json:"max_tcp_bps,omitempty"`
	MaxBesideAcksBps *float64           `json:"max_tcp_beside_acks_bps,omitempty"`
	BDPBytes         *float64           `json:"bdp_bytes,omitempty"`
	Tests            []RFC6349Test      `json:"tests"`
	Fix              []Fix              `json:"fix,omitempty"` // about what limits one connection
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
	Name     string          `json:"name"`
	Verdict  rfc6349.Verdict `json:"verdict"`
	Unit     string          `json:"unit"` // of the following: "bps" or "ratio"
	Due      float64         `json:"due"`
	Required float64         `json:"required"`
	Measured *float64        `json:"measured,omitempty"`
	CI95     *[2]float64     `json:"ci95,omitempty"`
	Reason   string          `json:"reason,omitempty"`
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
	Kind          rfc6349.Kind `json:"kind"`
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
	Verdict      rfc6349.Verdict `json:"verdict"`
	Reason       string          `json:"reason,omitempty"`
	Trials       []CapacityTrial `json:"trials,omitempty"`
}

// NewRFC6349 describes a test against what it was held to.
func NewRFC6349(h Header, peer, reference string, cfg rfc6349.Config, r *rfc6349.Result) *RFC6349 {
	doc := &RFC6349{Header: h, Peer: peer, Reference: reference,
		EndedAt: h.StartedAt.Add(r.Elapsed).Round(time.Millisecond), Near: NewHost(r.Near), Far: NewHost(r.Far),
		Verdict: r.Verdict, Interrupted: r.Interrupted, RunS: r.RunTime.Seconds(), ElapsedS: r.Elapsed.Seconds(),
		BytesSent: r.Bytes,
		Warnings:  r.Warnings, Directions: []RFC6349Direction{}, Formulas: []Formula{}}
	if len(cfg.Frames.Sizes) > 0 {
		doc.FrameSearch = &RFC6349FrameSearch{r.TrialTime.Seconds(), cfg.Frames.Loss}
	}
	if len(cfg.Committed) > 0 {
		c := &CommittedRates{OverheadBytes: cfg.Overhead, ToleranceRatio: cfg.Tolerance}
		if v, ok := cfg.Committed[transfer.Up]; ok {
			c.UpBps = &v
		}
		if v, ok := cfg.Committed[transfer.Down]; ok {
			c.DownBps = &v
		}
		doc.Committed = c
	}
	p := &r.Path
	doc.Path = RFC6349Path{MTUBytes: known(p.MTU), MTUMethod: p.MTUMethod, FirstMTUBytes: known(p.FirstMTU),
		RTTMethod:  p.RTTMethod,
		RTTSamples: known(p.RTTCount), MSSBytes: known(p.MSS), HeaderBytes: known(p.Headers), Timestamps: p.Timestamps,
		IPv6: p.IPv6}
	if p.RTT > 0 {
		doc.Path.RTTMinS = seconds(p.RTT)
	}
	if p.RTTCount > 1 {
		doc.Path.JitterS = seconds(p.Jitter)
	}
	for i := range r.Directions {
		doc.Directions = append(doc.Directions, newRFC6349Direction(p, &r.Directions[i]))
	}
	doc.Formulas = formulas(doc, r)
	return doc
}

func newRFC6349Direction(p *rfc6349.Path, d *rfc6349.Direction) RFC6349Direction {
	out := RFC6349Direction{Direction: d.Direction, Verdict: d.Verdict(), MaxTCPBps: positive(d.MaxTCPBps),
		MaxBesideAcksBps: positive(d.MaxBesideAcksBps), BDPBytes: positive(d.BDPBytes), Tests: []RFC6349Test{},
		CommittedBps: positive(d.Committed)}
	if p.RTT > 0 {
		out.RTTMinS = seconds(p.RTT)
	}
	out.draw(d)
	if b := d.Bottleneck; b.Bps > 0 {
		var burst *int64
		if b.BurstBytes > 0 {
			burst = &b.BurstBytes
		}
		out.Bottleneck = &RFC6349Bottleneck{Bps: b.Bps, Range: b.Range, AtLeast: b.AtLeast, Method: b.Method, Burst: burst,
			Trials: newTrials(b.Trials)}
	}
	for _, c := range d.Criteria {
		mid, ci := estimate(c.Measured)
		out.Criteria = append(out.Criteria, RFC6349Criterion{c.Name, c.Verdict, c.Unit, c.Due, c.Required, mid, ci, c.Reason})
	}
	for i := range d.Tests {
		out.Tests = append(out.Tests, newRFC6349Test(p, &d.Tests[i]))
	}
	if typical := oneConnection(d); typical != nil {
		out.Fix = NewFixes(typical.Verdict, FixFacts{GoodputBps: typical.GoodputBps, PathBps: d.MaxTCPBps, Bytes: typical.Bytes,
			DurationS: typical.Duration.Seconds(), RTTS: p.RTT.Seconds(), MSSBytes: p.MSS})
	}
	for _, f := range d.Frames {
		out.Frames = append(out.Frames, newRFC6349Frame(&f))
	}
	return out
}

// oneConnection is the run that says what one connection gets: as the systems size it, else
// with a window that suffices; nil where neither was measured.
func oneConnection(d *rfc6349.Direction) *rfc6349.Outcome {
	for _, kind := range []rfc6349.Kind{rfc6349.Automatic, rfc6349.Full} {
		for i := range d.Tests {
			if typical := d.Tests[i].Typical(); d.Tests[i].Kind == kind && typical != nil {
				return typical
			}
		}
	}
	return nil
}

func newRFC6349Test(p *rfc6349.Path, test *rfc6349.Test) RFC6349Test {
	out := RFC6349Test{Kind: test.Kind, Connections: test.Connections, WindowBytes: known(test.Window),
		BDPRatio:      positive(test.Share),
		AchievableBps: positive(test.AchievableBps), Runs: []RFC6349Run{}, Skipped: test.Skipped}
	out.GoodputBps, out.CI95Bps = estimate(test.Goodput)
	if typical := test.Typical(); typical != nil {
		out.Limiter, out.Subtype = typical.Verdict.Limiter, typical.Verdict.Subtype
	} else {
		out.GoodputBps, out.CI95Bps = nil, nil
	}
	for i := range test.Runs {
		out.Runs = append(out.Runs, newRFC6349Run(p, &test.Runs[i]))
	}
	return out
}

func newRFC6349Run(p *rfc6349.Path, r *rfc6349.Outcome) RFC6349Run {
	out := RFC6349Run{DurationS: r.Duration.Seconds(), StartupS: r.Startup.Seconds(), Bytes: r.Bytes,
		GoodputBps: r.GoodputBps,
		SteadyBps:  r.SteadyBps, ReachedBytes: known(r.Reached), IdealS: r.Ideal.Seconds(), TimeRatio: positive(r.Ratio),
		SteadyTimeRatio: positive(r.SteadyRatio), Limiter: r.Verdict.Limiter}
	if !r.Started.IsZero() {
		at := r.Started.UTC().Round(time.Millisecond)
		out.StartedAt = &at
	}
	if v, ok := r.Efficiency(); ok {
		out.SentBytes, out.Retransmitted, out.EfficiencyRatio = &r.Sent, &r.Again, &v
	}
	if v, ok := r.BufferDelay(p.RTT); ok {
		out.RTTMeanS, out.BufferDelayRatio = seconds(r.MeanRTT), &v
	}
	return out
}

func newRFC6349Frame(f *rfc6349.Frame) RFC6349Frame {
	out := RFC6349Frame{FrameBytes: f.Bytes, Verdict: f.Verdict, Reason: f.Reason, Due: positive(f.Due),
		AtLeast: f.AtLeast, Trials: newTrials(f.Trials)}
	if f.FramesPerSec > 0 {
		out.FramesPerSec, out.Bps, out.LossRatio = &f.FramesPerSec, &f.Bps, &f.Loss
	}
	return out
}

func newTrials(trials []rfc6349.Datagrams) (all []CapacityTrial) {
	for _, t := range trials {
		one := CapacityTrial{OfferedBps: t.Offered, ReceivedBps: t.Received, LossRatio: t.Loss}
		if t.Variation > 0 {
			one.VariationS = seconds(t.Variation)
		}
		all = append(all, one)
	}
	return all
}

// estimate is an interval's middle and its bounds, as far as they are known.
func estimate(i stats.Interval) (*float64, *[2]float64) { return rate(i.Mid), bounds(i) }

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

// draw keeps what the curves of the run that stands for one connection are made of.
func (d *RFC6349Direction) draw(in *rfc6349.Direction) {
	test := in.Test(rfc6349.Full)
	if test == nil || test.Typical() == nil {
		return
	}
	run := test.Typical()
	step := max(len(run.Intervals)/200, 1)
	for i := 0; i+step <= len(run.Intervals) && len(run.Intervals) >= 3; i += step {
		var bytes int64
		for _, one := range run.Intervals[i : i+step] {
			bytes += one.Bytes
		}
		from, to := run.Intervals[i].Start, run.Intervals[i+step-1].End
		v := int64(Bps(bytes, to-from))
		d.Course = append(d.Course, flow.Point{At: int64(from), Value: v}, flow.Point{At: int64(to), Value: v})
	}
	for _, r := range run.RTTs {
		d.RoundTrips = append(d.RoundTrips, flow.Point{At: int64(r.At), Value: int64(r.Mean)})
	}
}

// Shown is the run that stands for one connection with a window that suffices.
func (d *RFC6349Direction) Shown() *RFC6349Run {
	for i := range d.Tests {
		if d.Tests[i].Kind == rfc6349.Full {
			return d.Tests[i].Typical()
		}
	}
	return nil
}

func (r *RFC6349) curves() (all []curve) {
	for i := range r.Directions {
		d, of := &r.Directions[i], place("/directions/%d", i)
		all = append(all, curve{of: of, name: "goodput_bps", points: &d.Course}, curve{of: of, name: "rtt",
			points: &d.RoundTrips})
	}
	return all
}
