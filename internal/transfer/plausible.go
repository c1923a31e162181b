package transfer

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Bounds on what a far end may report. A value beyond them is impossible.
const (
	maxBps         = 1e14            // bit/s; 800GBASE (IEEE 802.3df) a hundredfold
	maxPacing      = 1 << 63         // bit/s; the kernel's figure may exceed any link's rate
	maxWindow      = 65535 << 14     // bytes: RFC 7323 section 2.3
	maxSocketBytes = 1 << 44         // bytes in one socket: any buffer, cwnd or queue
	maxScale       = 14              // RFC 7323 section 2.3
	maxSegment     = 1 << 16         // bytes
	maxCores       = 1 << 14         // of one machine
	maxSamples     = 8192            // of all streams of an end together; an end keeps at most this many
	maxText        = 256             // bytes of a name
	maxNotes       = 32              // warnings
	maxNote        = 1000            // bytes of one warning
	clockSlack     = 5 * time.Second // an initial RTT variance, a start-up delay
)

// ImplausibleError names a number of a far end that is impossible.
type ImplausibleError struct {
	Field  string // its JSON path: "streams[0].samples[3].rtt_ns"
	Value  any
	Reason string
}

func (e *ImplausibleError) Error() string {
	return fmt.Sprintf("the far end's %s is impossible: %v %s", e.Field, e.Value, e.Reason)
}

// Try returns what the user may do.
func (e *ImplausibleError) Try() string {
	return "another far end, or the same version of fullpipe there: this one's numbers cannot be used"
}

// Validate checks what a far end reported of a transfer by a Spec that lasted at most wall on this end's clock. It
// returns an *ImplausibleError for the first impossible number.
func (e *End) Validate(spec Spec, wall time.Duration) error {
	b := newValidator(wall)
	want := max(spec.Streams, 1)
	if spec.Requests.On() { // the first connection at most
		want = min(len(e.Streams), 1)
	}
	if len(e.Streams) != want {
		return &ImplausibleError{"streams", len(e.Streams), fmt.Sprintf("where %d were asked for", want)}
	}
	b.text("kernel", e.Kernel)
	b.text("buffer_rule", e.BufferRule)
	if e.CPU != nil {
		b.cpu(e.CPU)
	}
	if m := e.MemoryPressure; m != nil {
		b.time("memory_pressure.time_ns", m.Time)
		b.within("memory_pressure.times", float64(m.Times), 0, maxPressures)
	}
	if o := e.ConcurrentTests; o != nil {
		b.time("beside.time_ns", o.Time)
		b.within("beside.tests", float64(o.Tests), 1, maxTests)
	}
	if e.Losses != nil {
		b.losses(e.Losses)
	}
	b.dropCounters(e.DropCounters)
	b.within("clock_step_ns", math.Abs(float64(e.ClockStep)), 0, float64(maxClockStep))
	samples := 0
	for i := range e.Streams {
		s := &e.Streams[i]
		samples += len(s.Samples)
		if samples > maxSamples+2*len(e.Streams) {
			return &ImplausibleError{"streams[].samples", samples, fmt.Sprintf("is more than %d", maxSamples)}
		}
		b.prefix = fmt.Sprintf("streams[%d].", i)
		b.stream(s)
	}
	if e.Responses != nil {
		e.Responses.validate(b)
	}
	return b.result()
}

// Validate checks an interval that a far end reported, wall after the transfer was offered.
func (i Interval) Validate(wall time.Duration) error {
	b := newValidator(wall)
	b.time("interval.end_ns", i.End)
	b.within("interval.start_ns", float64(i.Start), 0, float64(max(i.End, 0)))
	b.bytes("interval.bytes", i.Bytes)
	b.rate("interval.bytes", i.Bytes, i.End-i.Start)
	return b.result()
}

// Validate checks the counters that a far end sends during a transfer.
func (s *Sending) Validate(spec Spec, wall time.Duration) error {
	b := newValidator(wall)
	b.within("sending.streams", float64(s.Streams), 0, float64(max(spec.Streams, 1)))
	b.time("sending.rtt_ns", s.RTT)
	b.bytes("sending.retransmitted", s.Retransmitted)
	for name, d := range map[string]time.Duration{"busy": s.Busy, "rwnd_limited": s.RwndLimited,
		"sndbuf_limited": s.SndbufLimited} {
		b.within("sending."+name+"_ns", float64(d), 0, float64(b.maxElapsed)*float64(max(spec.Streams, 1)))
	}
	return b.result()
}

// ValidateNotes checks a far end's warnings.
func ValidateNotes(notes []string) error {
	if len(notes) > maxNotes {
		return &ImplausibleError{"warnings", len(notes), fmt.Sprintf("is more than %d", maxNotes)}
	}
	for _, n := range notes {
		if len(n) > maxNote {
			return &ImplausibleError{"warnings", fmt.Sprintf("%d bytes", len(n)), fmt.Sprintf("is more than %d", maxNote)}
		}
	}
	return nil
}

// validator keeps the error of the first impossible number.
type validator struct {
	maxElapsed time.Duration // the longest time that a clock may show
	maxBytes   float64       // the most payload that can have moved
	prefix     string
	err        error
}

func newValidator(wall time.Duration) *validator {
	return &validator{maxElapsed: MaxElapsed(wall), maxBytes: float64(MaxBytes(wall))}
}

// MaxElapsed returns the longest time that a far end's clock may show for an event that took wall here.
func MaxElapsed(wall time.Duration) time.Duration { return wall + wall/100 + clockSlack }

// MaxBytes returns the most bytes that can have moved in that time.
func MaxBytes(wall time.Duration) int64 { return int64(maxBps / 8 * MaxElapsed(wall).Seconds()) }

func (b *validator) result() error { return b.err }

func (b *validator) within(field string, v, least, most float64) {
	if b.err == nil && (math.IsNaN(v) || v < least || v > most) {
		b.err = &ImplausibleError{b.prefix + field, v, fmt.Sprintf("is not between %v and %v", least, most)}
	}
}

// time checks a moment or a span within the transfer.
func (b *validator) time(field string, d time.Duration) {
	if b.err == nil && (d < 0 || d > b.maxElapsed) {
		b.err = &ImplausibleError{b.prefix + field, d, fmt.Sprintf("is not between 0 and %v, which the transfer took",
			b.maxElapsed)}
	}
}

// bytes checks a count of bytes, or of segments of at least one byte each.
func (b *validator) bytes(field string, n int64) { b.within(field, float64(n), 0, b.maxBytes) }

// socketBytes checks a size of one socket's buffer, window or queue.
func (b *validator) socketBytes(field string, n int64) {
	b.within(field, float64(n), 0, maxSocketBytes)
}

func (b *validator) text(field, s string) {
	if b.err == nil && len(s) > maxText {
		b.err = &ImplausibleError{b.prefix + field, fmt.Sprintf("%d bytes", len(s)), fmt.Sprintf("is more than %d",
			maxText)}
	}
	if b.err == nil && !Printable(s) {
		b.err = &ImplausibleError{b.prefix + field, strconv.QuoteToASCII(s), "is no system's name"}
	}
}

// Printable reports whether a text is ASCII without control characters. The names of kernels and of congestion
// controls are.
func Printable(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r > '~' })
}

const (
	maxPressures = 1e11                       // entries into memory pressure: one a microsecond for a day
	maxTests     = 1e8                        // concurrent tests: a thousand a second for a day
	maxClockStep = 146 * 365 * 24 * time.Hour // from 1970 to 2116
)

func (b *validator) cpu(c *CPU) {
	b.time("cpu.wall_ns", c.Wall)
	b.within("cpu.process_ns", float64(c.Process), 0, maxCores*float64(b.maxElapsed))
	b.within("cpu.busiest_thread", c.BusiestThread, 0, 1)
	b.within("cpu.starved_thread", c.RunqueueWait, 0, 1)
	if c.Host != nil {
		b.within("cpu.host", *c.Host, 0, 1)
	}
}

// IsPlausibleRate reports whether some link can carry these bytes in this time. Bytes of one instant have no rate.
func IsPlausibleRate(bytes int64, took time.Duration) bool {
	return took <= 0 || float64(bytes)*8/took.Seconds() <= maxBps
}

func (b *validator) rate(field string, bytes int64, took time.Duration) {
	if b.err == nil && !IsPlausibleRate(bytes, took) {
		b.err = &ImplausibleError{b.prefix + field, bytes, fmt.Sprintf("in %v", took)}
	}
}

func (b *validator) stream(s *Stream) {
	b.text("congestion", s.Congestion)
	b.bytes("bytes", s.Bytes)
	b.time("last_ns", s.Last)
	b.within("first_ns", float64(s.First), 0, float64(max(s.Last, 0)))
	b.within("opening", float64(s.FirstReadBytes), 0, float64(max(s.Bytes, 0)))
	b.rate("bytes", s.Bytes, s.Last-s.First)
	for name, buffer := range map[string]Buffer{"send_buffer": s.SendBuffer, "receive_buffer": s.ReceiveBuffer} {
		b.socketBytes(name+".requested", int64(buffer.Requested))
		b.socketBytes(name+".granted", int64(buffer.Granted))
		b.socketBytes(name+".effective", int64(buffer.Effective))
		b.socketBytes(name+".automatic_max", int64(buffer.AutomaticMax))
	}
	if h := s.Handshake; h != nil {
		b.within("handshake.mss", float64(h.MSS), 0, maxSegment)
		b.within("handshake.send_scale", float64(h.SendScale), -1, maxScale)
		b.within("handshake.receive_scale", float64(h.ReceiveScale), -1, maxScale)
		b.within("handshake.path_mtu", float64(h.PathMTU), 0, math.MaxUint32)
	}
	stream := b.prefix
	before := time.Duration(0)
	for i := range s.Samples {
		sample := &s.Samples[i]
		if b.err != nil {
			return
		}
		if sample.At < before {
			b.err = &ImplausibleError{fmt.Sprintf("%ssamples[%d].at_ns", stream, i), sample.At,
				"is before the one that came before"}
			return
		}
		before = sample.At
		if b.sample(sample); b.err != nil {
			if u, ok := b.err.(*ImplausibleError); ok {
				u.Field = fmt.Sprintf("%ssamples[%d].%s", stream, i, u.Field[len(stream):])
			}
		}
	}
}

func (b *validator) sample(s *Sample) {
	b.time("at_ns", s.At)
	b.time("rtt_ns", s.RTT)
	b.time("rttvar_ns", s.RTTVar)
	b.time("min_rtt_ns", s.MinRTT)
	b.time("busy_ns", s.Busy)
	b.time("rwnd_limited_ns", s.RwndLimited)
	b.time("sndbuf_limited_ns", s.SndbufLimited)
	b.time("blocked_ns", s.Blocked)
	b.time("paused_ns", s.Paused)
	b.time("awaited_ns", s.Awaited)
	b.time("starved_ns", s.RunqueueWait)
	b.socketBytes("cwnd", s.Cwnd)
	b.socketBytes("ssthresh", s.Ssthresh)
	b.socketBytes("in_flight", s.InFlight)
	b.socketBytes("not_sent", s.NotSent)
	b.socketBytes("queued", s.Queued)
	b.within("send_wnd", float64(s.SendWnd), 0, maxWindow)
	b.within("receive_wnd", float64(s.ReceiveWnd), 0, maxWindow)
	b.within("delivery_bps", s.DeliveryBps, 0, maxBps)
	b.within("pacing_bps", s.PacingBps, 0, maxPacing)
	b.bytes("sent", s.Sent)
	b.bytes("acked", s.Acked)
	b.bytes("received", s.Received)
	b.bytes("program", s.Program)
	b.bytes("lost", s.Lost)
	b.bytes("marked", s.DeliveredCE)
	b.bytes("out_of_order", s.RcvOOOPack)
	b.bytes("needless", s.DSACKDups)
	b.bytes("overtaken", s.ReordSeen)
	b.bytes("segments_in", s.SegmentsIn)
	b.within("timeouts", float64(s.Timeouts), 0, math.MaxUint8)
	// A retransmitted segment has at least one byte, except for those of the handshake.
	most := b.maxBytes
	if s.Have&HaveAcked != 0 && s.Sent > 0 {
		most = float64(s.Sent) + maxHandshakeRetransmits
	}
	b.within("retransmitted", float64(s.Retransmitted), 0, most)
	b.within("retransmitted_bytes", float64(s.RetransmittedBytes), 0, most)
}

// maxHandshakeRetransmits is the most retransmissions of SYN and FIN: tcp_syn_retries and tcp_orphan_retries are at
// most 127 and 255 in Linux.
const maxHandshakeRetransmits = 127 + 255
