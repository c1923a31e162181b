package transfer

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Bounds on what a far end may tell: beyond them it cannot be true.
const (
	mostBps     = 1e14            // bit/s; 800GBASE (IEEE 802.3df) a hundredfold
	mostPacing  = 1 << 63         // bit/s; a kernel's own figure, which nothing needs to reach
	mostWindow  = 65535 << 14     // bytes: RFC 7323 section 2.3
	mostHeld    = 1 << 44         // bytes in one socket: any buffer, cwnd or queue
	mostScale   = 14              // RFC 7323 section 2.3
	mostSegment = 1 << 16         // bytes
	mostCores   = 1 << 14         // of one machine
	mostKept    = 8192            // samples of all streams together, as any end keeps at most
	mostText    = 256             // bytes of a name
	mostNotes   = 32              // warnings
	mostNote    = 1000            // bytes of one
	clockSlack  = 5 * time.Second // what an initial RTT variance or a start-up delay may add
)

// UnbelievableError says which number of a far end cannot be true.
type UnbelievableError struct {
	Field string // as it travels: "streams[0].samples[3].rtt_ns"
	Value any
	Why   string
}

func (e *UnbelievableError) Error() string {
	return fmt.Sprintf("the far end's %s is not believable: %v %s", e.Field, e.Value, e.Why)
}

// Try is what the user may do about it.
func (e *UnbelievableError) Try() string {
	return "another far end, or the same version of fullpipe there: this one's numbers cannot be used"
}

// Believe checks what a far end told of a transfer by a Spec that lasted at most wall on
// this end's clock: nil, or *UnbelievableError for the first number that cannot be true.
func (e *End) Believe(spec Spec, wall time.Duration) error {
	b := newBeliever(wall)
	if want := max(spec.Streams, 1); len(e.Streams) != want {
		return &UnbelievableError{"streams", len(e.Streams), fmt.Sprintf("where %d were asked for", want)}
	}
	b.text("kernel", e.Kernel)
	b.text("buffer_rule", e.BufferRule)
	if e.CPU != nil {
		b.cpu(e.CPU)
	}
	if m := e.MemoryPressure; m != nil {
		b.time("memory_pressure.time_ns", m.Time)
		b.within("memory_pressure.times", float64(m.Times), 0, mostPressures)
	}
	if o := e.Beside; o != nil {
		b.time("beside.time_ns", o.Time)
		b.within("beside.tests", float64(o.Tests), 1, mostTests)
	}
	b.within("clock_step_ns", math.Abs(float64(e.ClockStep)), 0, float64(mostStep))
	samples := 0
	for i := range e.Streams {
		s := &e.Streams[i]
		samples += len(s.Samples)
		if samples > mostKept+2*len(e.Streams) {
			return &UnbelievableError{"streams[].samples", samples, "is more than anybody keeps"}
		}
		b.prefix = fmt.Sprintf("streams[%d].", i)
		b.stream(s)
	}
	return b.result()
}

// Believe checks an interval that a far end told of, wall after the transfer was offered.
func (i Interval) Believe(wall time.Duration) error {
	b := newBeliever(wall)
	b.time("interval.end_ns", i.End)
	b.within("interval.start_ns", float64(i.Start), 0, float64(max(i.End, 0)))
	b.bytes("interval.bytes", i.Bytes)
	b.rate("interval.bytes", i.Bytes, i.End-i.Start)
	return b.result()
}

// Believe checks how a far end says that it stands.
func (s *Sending) Believe(spec Spec, wall time.Duration) error {
	b := newBeliever(wall)
	b.within("sending.streams", float64(s.Streams), 0, float64(max(spec.Streams, 1)))
	b.time("sending.rtt_ns", s.RTT)
	b.bytes("sending.retransmitted", s.Retransmitted)
	for name, d := range map[string]time.Duration{"busy": s.Busy, "rwnd_limited": s.ReceiveLimited,
		"sndbuf_limited": s.SendLimited} {
		b.within("sending."+name+"_ns", float64(d), 0, float64(b.longest)*float64(max(spec.Streams, 1)))
	}
	return b.result()
}

// BelieveNotes checks a far end's warnings.
func BelieveNotes(notes []string) error {
	if len(notes) > mostNotes {
		return &UnbelievableError{"warnings", len(notes), fmt.Sprintf("is more than %d", mostNotes)}
	}
	for _, n := range notes {
		if len(n) > mostNote {
			return &UnbelievableError{"warnings", fmt.Sprintf("%d bytes", len(n)), fmt.Sprintf("is more than %d", mostNote)}
		}
	}
	return nil
}

// believer keeps the first number that cannot be true.
type believer struct {
	longest time.Duration // that anything may have lasted
	most    float64       // payload bytes that can have moved
	prefix  string
	err     error
}

func newBeliever(wall time.Duration) *believer {
	return &believer{longest: Longest(wall), most: float64(MostBytes(wall))}
}

// Longest is what a far end's clock may show of something that took wall here.
func Longest(wall time.Duration) time.Duration { return wall + wall/100 + clockSlack }

// MostBytes is how many bytes can have moved meanwhile.
func MostBytes(wall time.Duration) int64 { return int64(mostBps / 8 * Longest(wall).Seconds()) }

func (b *believer) result() error { return b.err }

func (b *believer) within(field string, v, least, most float64) {
	if b.err == nil && (math.IsNaN(v) || v < least || v > most) {
		b.err = &UnbelievableError{b.prefix + field, v, fmt.Sprintf("is not between %v and %v", least, most)}
	}
}

// time is a moment or a span within the transfer.
func (b *believer) time(field string, d time.Duration) {
	if b.err == nil && (d < 0 || d > b.longest) {
		b.err = &UnbelievableError{b.prefix + field, d, fmt.Sprintf("is not between 0 and %v, which the transfer took",
			b.longest)}
	}
}

// bytes is a count of what moved: bytes, or segments of which each has one at least.
func (b *believer) bytes(field string, n int64) { b.within(field, float64(n), 0, b.most) }

// held is what one socket holds, bytes.
func (b *believer) held(field string, n int64) { b.within(field, float64(n), 0, mostHeld) }

func (b *believer) text(field, s string) {
	if b.err == nil && len(s) > mostText {
		b.err = &UnbelievableError{b.prefix + field, fmt.Sprintf("%d bytes", len(s)), fmt.Sprintf("is more than %d",
			mostText)}
	}
	if b.err == nil && !Printable(s) {
		b.err = &UnbelievableError{b.prefix + field, strconv.QuoteToASCII(s), "is no system's name"}
	}
}

// Printable says whether a text is ASCII without control characters, as the names of
// kernels and of congestion controls are.
func Printable(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r > '~' })
}

// mostPressures bounds how often a kernel can have run short of memory: once a microsecond
// for a day.
const mostPressures = 1e11

// mostTests bounds how many tests can have run beside one: a thousand a second for a day.
// mostStep is how far a clock can have been set: from 1970 to 2116.
const (
	mostTests = 1e8
	mostStep  = 146 * 365 * 24 * time.Hour
)

func (b *believer) cpu(c *CPU) {
	b.time("cpu.wall_ns", c.Wall)
	b.within("cpu.process_ns", float64(c.Process), 0, mostCores*float64(b.longest))
	b.within("cpu.busiest_thread", c.BusiestThread, 0, 1)
	b.within("cpu.starved_thread", c.ThreadRunDelay, 0, 1)
	if c.Host != nil {
		b.within("cpu.host", *c.Host, 0, 1)
	}
}

// CanCome says whether any line carries so many bytes in a time. What came at one instant has no rate.
func CanCome(bytes int64, took time.Duration) bool {
	return took <= 0 || float64(bytes)*8/took.Seconds() <= mostBps
}

func (b *believer) rate(field string, bytes int64, took time.Duration) {
	if b.err == nil && !CanCome(bytes, took) {
		b.err = &UnbelievableError{b.prefix + field, bytes, fmt.Sprintf("in %v", took)}
	}
}

func (b *believer) stream(s *Stream) {
	b.text("congestion", s.Congestion)
	b.bytes("bytes", s.Bytes)
	b.time("last_ns", s.Last)
	b.within("first_ns", float64(s.First), 0, float64(max(s.Last, 0)))
	b.within("opening", float64(s.Opening), 0, float64(max(s.Bytes, 0)))
	b.rate("bytes", s.Bytes, s.Last-s.First)
	for name, buffer := range map[string]Buffer{"send_buffer": s.SendBuffer, "receive_buffer": s.ReceiveBuffer} {
		b.held(name+".requested", int64(buffer.Requested))
		b.held(name+".granted", int64(buffer.Granted))
		b.held(name+".effective", int64(buffer.Effective))
		b.held(name+".automatic_max", int64(buffer.AutomaticMax))
	}
	if h := s.Handshake; h != nil {
		b.within("handshake.mss", float64(h.MSS), 0, mostSegment)
		b.within("handshake.send_scale", float64(h.SendScale), -1, mostScale)
		b.within("handshake.receive_scale", float64(h.ReceiveScale), -1, mostScale)
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
			b.err = &UnbelievableError{fmt.Sprintf("%ssamples[%d].at_ns", stream, i), sample.At,
				"is before the one that came before"}
			return
		}
		before = sample.At
		if b.sample(sample); b.err != nil {
			if u, ok := b.err.(*UnbelievableError); ok {
				u.Field = fmt.Sprintf("%ssamples[%d].%s", stream, i, u.Field[len(stream):])
			}
		}
	}
}

func (b *believer) sample(s *Sample) {
	b.time("at_ns", s.At)
	b.time("rtt_ns", s.RTT)
	b.time("rttvar_ns", s.RTTVar)
	b.time("min_rtt_ns", s.MinRTT)
	b.time("busy_ns", s.Busy)
	b.time("rwnd_limited_ns", s.ReceiveLimited)
	b.time("sndbuf_limited_ns", s.SendLimited)
	b.time("blocked_ns", s.Blocked)
	b.time("paused_ns", s.Paused)
	b.time("awaited_ns", s.Awaited)
	b.time("starved_ns", s.RunDelay)
	b.held("cwnd", s.Cwnd)
	b.held("ssthresh", s.Ssthresh)
	b.held("in_flight", s.InFlight)
	b.held("not_sent", s.NotSent)
	b.held("queued", s.Queued)
	b.within("send_wnd", float64(s.SendWnd), 0, mostWindow)
	b.within("receive_wnd", float64(s.ReceiveWnd), 0, mostWindow)
	b.within("delivery_bps", s.DeliveryBps, 0, mostBps)
	b.within("pacing_bps", s.PacingBps, 0, mostPacing)
	b.bytes("sent", s.Sent)
	b.bytes("acked", s.Acked)
	b.bytes("received", s.Received)
	b.bytes("program", s.Program)
	b.bytes("lost", s.Lost)
	b.bytes("marked", s.Marked)
	b.bytes("out_of_order", s.OutOfOrder)
	b.bytes("needless", s.Needless)
	b.bytes("overtaken", s.Overtaken)
	b.bytes("segments_in", s.SegmentsIn)
	b.within("timeouts", float64(s.Timeouts), 0, math.MaxUint8)
	// A segment that was sent again has one byte at least, but for those of the handshake.
	most := b.most
	if s.Have&HaveAcked != 0 && s.Sent > 0 {
		most = float64(s.Sent) + mostHandshake
	}
	b.within("retransmitted", float64(s.Retransmitted), 0, most)
	b.within("retransmitted_bytes", float64(s.RetransmittedBytes), 0, most)
}

// mostHandshake is how often a SYN or a FIN may have been sent again (tcp_syn_retries and
// tcp_orphan_retries are at most 127 and 255 in Linux).
const mostHandshake = 127 + 255
