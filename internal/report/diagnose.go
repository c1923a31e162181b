package report

import (
	"fmt"
	"net/netip"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/capture"
	"github.com/fullpipe-net/fullpipe/internal/flow"
	"github.com/fullpipe-net/fullpipe/internal/limiter"
	"github.com/fullpipe-net/fullpipe/internal/units"
)

// Diagnose is the object that `diagnose --json` prints: what limited each direction of
// each captured connection, those that lost most time first.
type Diagnose struct {
	Header
	Files       []string             `json:"files"`
	Packets     int64                `json:"packets"`
	Segments    int64                `json:"segments"`
	Connections []CapturedConnection `json:"connections"`
	Warnings    []string             `json:"warnings,omitempty"`
	Interrupted bool                 `json:"interrupted,omitempty"`
}

// CapturedConnection is one connection of a capture.
type CapturedConnection struct {
	Client     string              `json:"client"`
	Server     string              `json:"server"`
	StartedAt  time.Time           `json:"started_at"`
	DurationS  float64             `json:"duration_s"`
	Handshake  *CapturedHandshake  `json:"handshake,omitempty"`
	Vantage    string              `json:"vantage"` // client, server, middle or unknown
	Directions []CapturedDirection `json:"directions"`
	Notes      []string            `json:"notes,omitempty"`

	flow *flow.Connection
}

// CapturedHandshake is what the two SYNs said; a SYN that was not captured is absent.
type CapturedHandshake struct {
	// MSS in bytes and WindowScale are each end's offer; an option that was not there is
	// absent.
	MSS         map[string]int `json:"mss"`
	WindowScale map[string]int `json:"window_scale"`
	SACK        *bool          `json:"sack,omitempty"` // both offered; absent: not known
	Timestamps  *bool          `json:"timestamps,omitempty"`
}

// CapturedDirection is what one end sent.
type CapturedDirection struct {
	From                 string   `json:"from"`
	Bytes                int64    `json:"bytes"`
	DurationS            float64  `json:"duration_s"`
	GoodputBps           *float64 `json:"goodput_bps,omitempty"`
	RTTMinS              *float64 `json:"rtt_min_s,omitempty"`
	RTTMaxS              *float64 `json:"rtt_max_s,omitempty"`
	Segments             int64    `json:"segments"`
	RetransmittedSegment int64    `json:"retransmitted_segments"`
	SpuriousSegments     int64    `json:"spurious_retransmissions,omitempty"` // that the receiver did not need
	OutOfOrderSegments   int64    `json:"out_of_order_segments,omitempty"`
	Timeouts             int64    `json:"timeouts,omitempty"`
	UncapturedBytes      int64    `json:"uncaptured_bytes,omitempty"` // acknowledged, but not in the capture
	WindowMaxBytes       *int64   `json:"window_max_bytes,omitempty"`
	WindowScale          *int     `json:"window_scale,omitempty"` // of the windows this direction obeys
	OutstandingMaxBytes  int64    `json:"outstanding_max_bytes"`
	LostS                float64  `json:"lost_s"`
	TapAt                string   `json:"tap_at"` // sender, receiver, middle or unknown
	limiter.Verdict
	Prediction *CapturedPrediction `json:"prediction,omitempty"`
	Settings   []CapturedSettings  `json:"settings,omitempty"`

	flow      *flow.Direction
	diagnosis limiter.Diagnosis
}

// CapturedPrediction is what a fix would give.
type CapturedPrediction struct {
	Fix     string  `json:"fix"`
	LowBps  float64 `json:"low_bps"`
	HighBps float64 `json:"high_bps,omitempty"`
	AtLeast bool    `json:"at_least"`
}

// NewDiagnose judges what captures hold. Directions with fewer payload bytes than least
// are left out, and so are connections without any; where that leaves nothing, all stay.
func NewDiagnose(h Header, a *capture.Analysis, least int64) *Diagnose {
	r := &Diagnose{Header: h, Packets: a.Packets, Segments: a.Segments, Connections: []CapturedConnection{}, Warnings: a.Warnings, Files: []string{}}
	for _, f := range a.Files {
		r.Files = append(r.Files, f.Name)
	}
	r.Connections = append(r.Connections, judgeAll(a.Connections, least)...)
	if len(r.Connections) == 0 && least > 1 {
		return NewDiagnose(h, a, 1)
	}
	slices.SortStableFunc(r.Connections, func(x, y CapturedConnection) int {
		a, b := x.worst(), y.worst()
		switch {
		case a.LostS != b.LostS:
			return compare(b.LostS, a.LostS)
		}
		return compare(float64(b.Bytes), float64(a.Bytes))
	})
	return r
}

func compare(a, b float64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// hosts are the two addresses that data goes between.
type hosts struct{ from, to netip.Addr }

func between(d *flow.Direction) hosts {
	return hosts{d.From.AddrPort().Addr(), d.To.AddrPort().Addr()}
}

// mostParallel bounds how many connections between two hosts are compared with each other.
const mostParallel = 64

// parallels lists the directions between the same two hosts that carried something.
func parallels(all []*flow.Connection) map[hosts][]limiter.Parallel {
	const least = 100_000
	beside := map[hosts][]limiter.Parallel{}
	for _, c := range all {
		for _, d := range c.Directions() {
			if key := between(d); d.Bytes >= least && len(beside[key]) < mostParallel {
				beside[key] = append(beside[key], limiter.Parallel{Connection: c, Direction: d})
			}
		}
	}
	return beside
}

// judgeAll judges, in their order and on all processors, the connections of which a
// direction carried at least so much.
func judgeAll(captured []*flow.Connection, least int64) []CapturedConnection {
	var all []*flow.Connection
	for _, c := range captured {
		if slices.ContainsFunc(c.Directions(), func(d *flow.Direction) bool { return d.Bytes >= least }) {
			all = append(all, c)
		}
	}
	judged, beside := make([]CapturedConnection, len(all)), parallels(captured)
	var next atomic.Int64
	var wait sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(all)) {
		wait.Go(func() {
			for i := next.Add(1) - 1; i < int64(len(all)); i = next.Add(1) - 1 {
				judged[i] = newCapturedConnection(all[i], least, beside)
			}
		})
	}
	wait.Wait()
	return judged
}

func newCapturedConnection(c *flow.Connection, least int64, beside map[hosts][]limiter.Parallel) CapturedConnection {
	r := CapturedConnection{Client: c.Client().AddrPort().String(), Server: c.Server().AddrPort().String(),
		StartedAt: time.Unix(0, c.Started).UTC(), DurationS: float64(c.Ended) / 1e9, Vantage: "unknown", flow: c}
	r.Handshake = newCapturedHandshake(c)
	for _, d := range c.Directions() {
		if d.Bytes < least {
			continue
		}
		got := newCapturedDirection(c, d, beside[between(d)])
		r.Directions = append(r.Directions, got)
		r.Vantage = vantageOf(c, d, got.diagnosis.Vantage, r.Vantage)
	}
	switch {
	case !c.SYN && !c.SYNACK:
		r.Notes = append(r.Notes, "the handshake was not captured: options and window scales are inferred")
	case !c.SYN:
		r.Notes = append(r.Notes, "the SYN was not captured")
	case !c.SYNACK:
		r.Notes = append(r.Notes, "the SYN-ACK was not captured: window scales are inferred")
	}
	if c.ClientOffer().OptionsCut || c.ServerOffer().OptionsCut {
		r.Notes = append(r.Notes, "the capture cut the SYNs' options off: what is missing is not known to have been absent")
	}
	return r
}

// vantageOf says at which end of the connection the tap stood, from one direction's view.
func vantageOf(c *flow.Connection, d *flow.Direction, v limiter.Vantage, before string) string {
	fromClient := d.From == c.Client()
	switch {
	case v == limiter.VantageUnknown || before != "unknown":
		return before
	case v == limiter.InTheMiddle:
		return "middle"
	case (v == limiter.AtSender) == fromClient:
		return "client"
	}
	return "server"
}

func newCapturedHandshake(c *flow.Connection) *CapturedHandshake {
	client, server := c.ClientOffer(), c.ServerOffer()
	if !client.Seen && !server.Seen {
		return nil
	}
	h := &CapturedHandshake{MSS: map[string]int{}, WindowScale: map[string]int{}}
	for name, o := range map[string]flow.Offer{"client": client, "server": server} {
		if o.MSS > 0 {
			h.MSS[name] = o.MSS
		}
		if o.Scale >= 0 {
			h.WindowScale[name] = o.Scale
		}
	}
	if client.Seen && server.Seen && !client.OptionsCut && !server.OptionsCut {
		sack, timestamps := client.SACK && server.SACK, client.Timestamps && server.Timestamps
		h.SACK, h.Timestamps = &sack, &timestamps
	}
	return h
}

func newCapturedDirection(c *flow.Connection, d *flow.Direction, beside []limiter.Parallel) CapturedDirection {
	g := limiter.JudgeCapture(c, d, beside...)
	r := CapturedDirection{From: d.From.AddrPort().String(), Bytes: d.Bytes, DurationS: float64(d.Last-d.First) / 1e9,
		Segments: d.Segments, RetransmittedSegment: d.Retransmitted, OutstandingMaxBytes: d.MaxOut, LostS: g.LostTime.Seconds(),
		TapAt: string(g.Vantage), Verdict: g.Verdict, flow: d, diagnosis: g}
	if r.Evidence == nil {
		r.Evidence = []limiter.Evidence{}
	}
	if g.GoodputBps > 0 {
		r.GoodputBps = &g.GoodputBps
	}
	if d.RTTMin > 0 {
		least, most := float64(d.RTTMin)/1e9, float64(d.RTTMax)/1e9
		r.RTTMinS, r.RTTMaxS = &least, &most
	}
	r.SpuriousSegments, r.OutOfOrderSegments, r.Timeouts, r.UncapturedBytes = d.Spurious, d.OutOfOrder, d.Timeouts, d.Unseen
	if d.WindowMax > 0 {
		r.WindowMaxBytes = &d.WindowMax
	}
	if d.ScaleKnown {
		r.WindowScale = &d.Scale
	}
	if p := g.Prediction; p != nil {
		r.Prediction = &CapturedPrediction{p.Fix, p.LowBps, p.HighBps, p.AtLeast}
	}
	r.Settings = r.settings()
	return r
}

// worst is the direction that lost most time.
func (c *CapturedConnection) worst() *CapturedDirection {
	w := &c.Directions[0]
	for i := range c.Directions {
		if d := &c.Directions[i]; d.LostS > w.LostS || d.LostS == w.LostS && d.Bytes > w.Bytes {
			w = d
		}
	}
	return w
}

// Sentence is the answer in one line: limited by what, what to change, what to expect.
func (d *CapturedDirection) Sentence() string {
	text := "limited by " + string(d.Limiter)
	switch d.Limiter {
	case limiter.Unknown:
		text = "what limited it is not known"
	case limiter.Mixed:
		text = "limited by several things in turn"
	}
	if d.Subtype != "" {
		text += " (" + d.Subtype + ")"
	}
	if len(d.Candidates) > 0 {
		text += ": " + names(d.Candidates, " or ")
	}
	if len(d.Evidence) > 0 {
		text += " because " + d.Evidence[0].Text
	}
	if p := d.Prediction; p != nil {
		text += "; " + p.Fix + "; expect " + p.text()
	} else if fix := limiter.Remedy(d.Verdict); fix != "" {
		text += "; " + fix
	}
	return text + "."
}

func names(all []limiter.Name, between string) string {
	var parts []string
	for _, n := range all {
		parts = append(parts, string(n))
	}
	return strings.Join(parts, between)
}

func (p *CapturedPrediction) text() string {
	if p.AtLeast {
		return fmt.Sprintf("at least %s (what limits next is not known)", units.Rate(p.LowBps))
	}
	return fmt.Sprintf("%s to %s", units.Rate(p.LowBps), units.Rate(p.HighBps))
}
