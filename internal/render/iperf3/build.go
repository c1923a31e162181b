package iperf3

import (
	"math"
	"net/netip"
	"slices"
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
	d.Title, d.Extra = p.Title, p.Extra
	if a.SendBuffer > 0 {
		d.Start.SendBuffer, d.Start.RecvBuffer = &a.SendBuffer, &a.ReceiveBuffer
	}
	d.Start.Cookie = strings.TrimRight(string(a.Cookie[:]), "\x00")
	d.Start.Test, d.Start.Bitrate, d.Start.Buffer, d.Start.FQRate = test, &p.Bandwidth, &p.Window, &p.FQRate
	return d
}

// Finish adds what was measured; came is what moved in each direction, piece by piece.
func (d *Document) Finish(a *iperf3.Account, asked Asked, came map[transfer.Direction]*Pieces) {
	if a == nil || len(a.Legs) == 0 {
		return
	}
	if first := a.Legs[0].TCP; first != nil && first.Near != nil && len(first.Near.Streams) > 0 {
		s := first.Near.Streams[0]
		d.Start.SendBuffer, d.Start.RecvBuffer = &s.SendBuffer.Granted, &s.ReceiveBuffer.Granted
		if s.Handshake != nil {
			d.Start.MSS = &s.Handshake.MSS
			if asked := a.Params.MSS; asked > 0 {
				d.Start.MSS, d.Start.AskedMSS = nil, &asked
			}
		}
	}
	if a.Params.UDP {
		d.datagrams(a, came)
	} else {
		d.intervals(a, asked.Interval)
	}
	if len(a.Far.Streams) > 0 || asked.server() {
		d.end(a)
		d.Text, d.Object = a.Far.OutputText, a.Far.OutputJSON
	}
}

// streamsOf are the streams of a leg, from their samples.
func streamsOf(leg transfer.Outcome) []transfer.Stream {
	if leg.TCP == nil || leg.TCP.Near == nil {
		return nil
	}
	return leg.TCP.Near.Streams
}

// intervals cuts the test into pieces, by what each stream's samples say at their ends.
func (d *Document) intervals(a *iperf3.Account, every time.Duration) {
	omit := time.Duration(a.Params.Omit) * time.Second
	var last time.Duration
	for _, leg := range a.Legs {
		for _, s := range streamsOf(leg) {
			if n := len(s.Samples); n > 0 {
				last = max(last, s.Samples[n-1].At)
			}
		}
	}
	if last <= 0 {
		return
	}
	if every <= 0 {
		every = last
	}
	const rest = 10 // a last piece below a tenth of an interval belongs to the one before
	for from := time.Duration(0); from < last; {
		to := from + every
		if from < omit && to > omit {
			to = omit // what is omitted ends with a piece of its own
		}
		if to > last || last-to < every/rest {
			to = last
		}
		var one Interval
		socket := 0
		for i, leg := range a.Legs {
			sends := leg.TCP != nil && leg.TCP.Spec.Direction == transfer.Up
			var spans []Span
			for _, s := range streamsOf(leg) {
				span := piece(&s, from, to, sends, omit)
				span.Socket = socketOf(socket)
				spans, socket = append(spans, span), socket+1
			}
			if len(spans) == 0 {
				continue
			}
			one.Streams = append(one.Streams, spans...)
			sum := total(spans)
			if i == 0 {
				one.Sum = &sum
			} else {
				one.Reverse = &sum
			}
		}
		d.Intervals = append(d.Intervals, one)
		from = to
	}
}

// datagrams are UDP's intervals.
func (d *Document) datagrams(a *iperf3.Account, came map[transfer.Direction]*Pieces) {
	omit := time.Duration(a.Params.Omit) * time.Second
	for i, leg := range a.Legs {
		sends := leg.Datagrams.Spec.Direction == transfer.Up
		pieces := came[leg.Datagrams.Spec.Direction]
		for k, piece := range pieces.all() {
			from, to := piece.Start, piece.End
			omitted := omit > 0 && to <= omit+pieces.every/slack
			if omit > 0 && !omitted {
				from, to = max(from-omit, 0), to-omit // the clock starts again
			}
			if k == len(d.Intervals) {
				d.Intervals = append(d.Intervals, Interval{Streams: []Span{}})
			}
			one := &d.Intervals[k]
			var all transfer.FlowInterval
			for n, flow := range piece.Flows {
				span := flowed(from, to, flow, sends, omitted)
				span.Socket = socketOf(i*len(piece.Flows) + n)
				one.Streams = append(one.Streams, span)
				all.Bytes, all.Packets, all.Lost = all.Bytes+flow.Bytes, all.Packets+flow.Packets, all.Lost+flow.Lost
				all.Jitter += flow.Jitter / time.Duration(len(piece.Flows))
			}
			sum := flowed(from, to, all, sends, omitted)
			if i == 0 {
				one.Sum = &sum
			} else {
				one.Reverse = &sum
			}
		}
	}
}

// flowed is what one flow moved, or all of a direction.
func flowed(from, to time.Duration, f transfer.FlowInterval, sends, omitted bool) Span {
	span := rated(from, to, f.Bytes)
	span.Omitted, span.Sender = &omitted, sends
	if sends {
		span.Packets = &f.Packets
	} else {
		counted(&span, f.Jitter.Seconds(), max(f.Lost, 0), f.Packets)
	}
	return span
}

// Pieces puts what moved together to intervals while it comes. The zero value is one
// interval.
type Pieces struct {
	every time.Duration
	got   []transfer.Interval
}

// NewPieces collects both directions in intervals of about every; 0 is one interval.
func NewPieces(every time.Duration) map[transfer.Direction]*Pieces {
	return map[transfer.Direction]*Pieces{transfer.Up: {every: every}, transfer.Down: {every: every}}
}

// slack is the part of an interval by which its end may be late.
const slack = 20

// Add takes the next piece.
func (c *Pieces) Add(p transfer.Interval) {
	n := len(c.got)
	if n > 0 && (c.every <= 0 || p.End <= time.Duration(n)*c.every+c.every/slack) {
		c.join(n-1, p)
		return
	}
	start := time.Duration(0)
	if n > 0 {
		start = c.got[n-1].End
	}
	c.got = append(c.got, transfer.Interval{Start: start, End: p.End, Bytes: p.Bytes, Flows: slices.Clone(p.Flows)})
}

// join adds a piece to the nth interval.
func (c *Pieces) join(n int, p transfer.Interval) {
	into := &c.got[n]
	into.End, into.Bytes = p.End, into.Bytes+p.Bytes
	for i := range min(len(into.Flows), len(p.Flows)) {
		flow := &into.Flows[i]
		flow.Bytes, flow.Packets, flow.Lost = flow.Bytes+p.Flows[i].Bytes, flow.Packets+p.Flows[i].Packets,
			flow.Lost+p.Flows[i].Lost
		flow.Jitter = p.Flows[i].Jitter
	}
}

// all are the intervals; what little is left at the end joins the last one.
func (c *Pieces) all() []transfer.Interval {
	const rest = 10
	if c == nil {
		return nil
	}
	if n := len(c.got); n > 1 && c.got[n-1].End-c.got[n-1].Start < c.every/rest {
		c.join(n-2, c.got[n-1])
		c.got = c.got[:n-1]
	}
	return c.got
}

// piece is one stream between two times of its clock.
func piece(s *transfer.Stream, from, to time.Duration, sends bool, omit time.Duration) Span {
	before, after := at(s, from), at(s, to)
	omitted := omit > 0 && to <= omit
	if omit > 0 && !omitted {
		from, to = from-omit, to-omit // the clock starts again
	}
	span := rated(from, to, after.Program-before.Program)
	span.Omitted, span.Sender = &omitted, sends
	if !sends {
		return span
	}
	resent := after.Retransmitted - before.Retransmitted
	rtt, variance := after.RTT.Microseconds(), after.RTTVar.Microseconds()
	span.Retransmits, span.Cwnd, span.SendWnd, span.RTT, span.RTTVar = &resent, &after.Cwnd, &after.SendWnd, &rtt,
		&variance
	if s.Handshake != nil {
		span.PMTU = &s.Handshake.PathMTU
	}
	return span
}

// at is a stream's last sample until a time.
func at(s *transfer.Stream, t time.Duration) (last transfer.Sample) {
	for i := range s.Samples {
		if s.Samples[i].At > t {
			break
		}
		last = s.Samples[i]
	}
	return last
}

func rated(from, to time.Duration, bytes int64) Span {
	span := Span{Start: micro(from), End: micro(to), Seconds: micro(to - from), Bytes: bytes}
	if to > from {
		span.Bps = float64(bytes) * 8 / (to - from).Seconds()
	}
	return span
}

func micro(d time.Duration) float64 { return math.Round(d.Seconds()*1e6) / 1e6 }

// total sums streams over the time of the first.
func total(spans []Span) Span {
	sum := Span{Start: spans[0].Start, End: spans[0].End, Seconds: spans[0].Seconds, Omitted: spans[0].Omitted,
		Sender: spans[0].Sender}
	for _, s := range spans {
		sum.Bytes += s.Bytes
		sum.Bps += s.Bps
		if s.Retransmits != nil {
			resent := *s.Retransmits
			if sum.Retransmits != nil {
				resent += *sum.Retransmits
			}
			sum.Retransmits = &resent
		}
	}
	return sum
}
