package iperf3

import (
	"math"
	"net/netip"
	"strings"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/iperf3"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// firstSocket is what iperf3 calls its first stream; those after it are 7, 9, ….
// Descriptors are not told: numbers that differ are all that readers need.
const firstSocket = 5

func socketOf(stream int) int { return firstSocket + 2*stream }

// Asked is what a user asked for and of whom.
type Asked struct {
	Host     string
	Port     int
	Interval time.Duration // between two lines; 0: one line at the end
	System   string
	// From is whose test a server accepted; a client has none.
	From netip.AddrPort
}

func (asked Asked) server() bool { return asked.From.IsValid() }

// Begin is the part of a document that is known when the streams are open.
func Begin(a *iperf3.Account, asked Asked) *Document {
	d := &Document{Start: Start{Connected: []Connected{}, Version: Version, System: asked.System}, Intervals: []Interval{}}
	if asked.server() {
		d.Start.Accepted = &HostPort{asked.From.Addr().String(), int(asked.From.Port())}
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
	if !asked.server() {
		d.Start.Connecting = &HostPort{asked.Host, asked.Port}
	}
	d.Title = p.Title
	d.Extra = p.Extra
	d.ControlMSS = a.ControlMSS
	d.Chosen = a.Chosen
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

// mss tells a segment's size, or what was asked for.
func (d *Document) mss(h *transfer.Handshake, asked int) {
	d.Start.MSS = &h.MSS
	if asked > 0 {
		d.Start.MSS = nil
		d.Start.AskedMSS = &asked
	}
}

// Finish adds what was measured; cuts is what moved until then.
func (d *Document) Finish(a *iperf3.Account, asked Asked, cuts *Cuts) {
	if a == nil || len(a.Legs) == 0 {
		return
	}
	if cuts == nil {
		cuts = NewCuts(a, asked.Interval, asked.server())
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
	if len(a.Far.Streams) > 0 || asked.server() {
		d.end(a)
	}
	if a.Params.ServerOutput { // 3.12 servers go on telling it to clients that do not ask
		d.Text = a.Far.OutputText
		d.Object = a.Far.OutputJSON
	}
}

func rated(from, to time.Duration, bytes int64) Span {
	span := Span{Start: micro(from), End: micro(to), Seconds: micro(to - from), Bytes: bytes}
	if to > from {
		span.Bps = float64(bytes) * 8 / (to - from).Seconds()
	}
	return span
}

func micro(d time.Duration) float64 { return math.Round(d.Seconds()*1e6) / 1e6 }
