package iperf3

import (
	"math"
	"net/netip"
	"strings"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/iperf3"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// firstSocket is the number that iperf3 usually prints for its first stream. Further streams are 7, 9, ….
// Readers only need distinct numbers.
const firstSocket = 5

func socketOf(stream int) int { return firstSocket + 2*stream }

// Options are the user's options and the far end.
type Options struct {
	Host     string
	Port     int
	Interval time.Duration // between two lines; 0: one line at the end
	System   string
	// AcceptedFrom is the client of a server's test, zero at a client.
	AcceptedFrom netip.AddrPort
}

func (asked Options) isServer() bool { return asked.AcceptedFrom.IsValid() }

// Begin returns the part of a document that is known when the streams are open.
func Begin(a *iperf3.TestResult, asked Options) *Document {
	d := &Document{Start: Start{Connected: []Connected{}, Version: Version, System: asked.System}, Intervals: []Interval{}}
	if asked.isServer() {
		d.Start.Accepted = &HostPort{asked.AcceptedFrom.Addr().String(), int(asked.AcceptedFrom.Port())}
	}
	if a == nil || len(a.Streams) == 0 {
		return d
	}
	for i, s := range a.Streams {
		d.Start.Connected = append(d.Start.Connected, Connected{socketOf(i), s.Local.Addr().String(), int(s.Local.Port()),
			s.Remote.Addr().String(), int(s.Remote.Port())})
	}
	p := a.Params
	test := &Test{Protocol: "TCP", Streams: max(p.Streams, 1), Length: p.Len, Omit: p.Omit, Duration: p.Time, Bytes: p.Num,
		Blocks: p.Blocks, TOS: p.TOS, Bitrate: p.Bandwidth, FQRate: p.FQRate, Interval: asked.Interval.Seconds()}
	if p.Both {
		test.Both = 1
	}
	if p.UDP {
		test.Protocol = "UDP"
	}
	if p.Reverse {
		test.Reverse = 1
	}
	began := a.Started.UTC()
	d.Start.Timestamp = &Timestamp{began.Format("Mon, 02 Jan 2006 15:04:05 GMT"), began.Unix(), began.UnixMilli()}
	if !asked.isServer() {
		d.Start.Connecting = &HostPort{asked.Host, asked.Port}
	}
	d.Title = p.Title
	d.Extra = p.Extra
	d.ControlMSS = a.ControlMSS
	d.ChosenByMSS = a.ChosenByMSS
	if len(a.Handshakes) > 0 && a.Handshakes[0] != nil {
		d.mss(a.Handshakes[0], p.MSS)
	}
	if a.SendBuffer > 0 {
		d.Start.SendBuffer = &a.SendBuffer
		d.Start.RecvBuffer = &a.ReceiveBuffer
	}
	d.Start.Cookie = strings.TrimRight(string(a.Cookie[:]), "\x00")
	d.Start.Test = test
	d.Start.Bitrate = &p.Bandwidth
	d.Start.Buffer = &p.Window
	d.Start.FQRate = &p.FQRate
	return d
}

// mss sets the MSS, or the requested one.
func (d *Document) mss(h *transfer.Handshake, asked int) {
	d.Start.MSS = &h.MSS
	if asked > 0 {
		d.Start.MSS = nil
		d.Start.AskedMSS = &asked
	}
}

// Finish adds the results. cuts has the intervals so far.
func (d *Document) Finish(a *iperf3.TestResult, asked Options, cuts *Intervals) {
	if a == nil || len(a.Legs) == 0 {
		return
	}
	if cuts == nil {
		cuts = NewIntervals(a, asked.Interval, asked.isServer())
	}
	if first := a.Legs[0].TCP; first != nil && first.Near != nil && len(first.Near.Streams) > 0 {
		s := first.Near.Streams[0]
		d.Start.SendBuffer = &s.SendBuffer.Granted
		d.Start.RecvBuffer = &s.ReceiveBuffer.Granted
		if s.Handshake != nil {
			d.mss(s.Handshake, a.Params.MSS)
		}
	}
	d.Intervals = cuts.All(a.Legs)
	if len(a.Far.Streams) > 0 || asked.isServer() {
		d.end(a)
	}
	if a.Params.ServerOutput { // 3.12 servers may send it unrequested
		d.Text = a.Far.OutputText
		d.Object = a.Far.OutputJSON
	}
}

func newSpan(from, to time.Duration, bytes int64) Span {
	span := Span{Start: roundMicro(from), End: roundMicro(to), Seconds: roundMicro(to - from), Bytes: bytes}
	if to > from {
		span.Bps = float64(bytes) * 8 / (to - from).Seconds()
	}
	return span
}

func roundMicro(d time.Duration) float64 { return math.Round(d.Seconds()*1e6) / 1e6 }
