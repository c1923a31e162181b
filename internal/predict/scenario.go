package predict

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/link"
	"github.com/fullpipe-net/fullpipe/internal/model"
	"github.com/fullpipe-net/fullpipe/internal/plan"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// scenario is a path and a setup as the models need them: one direction, in segments and seconds. A missing limit is
// infinite.
type scenario struct {
	mss         float64    // payload bytes of a full segment
	headers     float64    // IP, TCP and options
	rate        float64    // bit/s at the IP layer
	segment     float64    // seconds that a full segment takes on the line
	rtt         float64    // of the empty path, with serialization
	trailing    float64    // seconds that a window's round takes beyond rtt: model.Service
	jitter      [2]float64 // spread of each direction's delay
	queue       float64    // segments
	loss        float64    // share of segments
	burst       float64    // mean number of segments lost in a row
	window      float64    // bytes, each connection: receive window
	send        float64    // bytes in flight that the sender's buffer sustains, each connection
	granted     int        // bytes of a receive buffer that a program asked for; 0: none
	fixed       bool       // the window does not follow what arrives
	unscaled    bool
	delayed     time.Duration // the receiver's acknowledgements; 0: by Linux's rules
	factorZero  bool          // the receiver bounds its window from the handshake on
	initial     float64       // segments that the sender begins with
	sack        bool
	overruns    bool // the send buffer is no firm bound
	congestion  string
	policed     bool // the rate is a policer's
	capped      bool // the rate is the sum of the connections' limits
	connections int
	bytes       float64 // of all connections
	piece       float64 // bytes that a connection takes of them at a time; 0: as it comes
	time        float64 // seconds
	ready       bool    // begin with a full window: slow start taken away
	warnings    []verdict.Note
	uncut       *scenario // before the window set the size and the round trip of its segments; nil: it did not
}

// ArgumentError names the part of a Setup that was wrong.
type ArgumentError struct{ Argument, Message, Right string }

func (e *ArgumentError) Error() string { return e.Argument + ": " + e.Message }

// Try returns a correct value.
func (e *ArgumentError) Try() string { return e.Right }

const maxConnections = 1000

const defaultTime = 30 // seconds: long enough to be steady

func newScenario(p link.Path, s Setup) (*scenario, error) {
	data := p.Up
	acks := p.Down
	sender := p.Near
	receiver := p.Far
	if s.Direction == transfer.Down {
		data = p.Down
		acks = p.Up
		sender = p.Far
		receiver = p.Near
	}
	if s.Connections > maxConnections {
		return nil, &ArgumentError{"connections", fmt.Sprintf("%d are too many", s.Connections),
			fmt.Sprintf("at most %d", maxConnections)}
	}
	r := &scenario{loss: data.Loss, burst: math.Max(data.LossBurst, 1), connections: max(s.Connections, 1),
		bytes: math.Inf(1), time: s.Time.Seconds()}
	if s.Bytes > 0 {
		r.bytes = float64(s.Bytes)
		if r.connections > 1 { // as probe's streams do
			r.piece = math.Max(r.bytes/float64(4*r.connections), 16<<10)
			if s.WriteBytes > 0 {
				r.piece = math.Min(r.piece, float64(s.WriteBytes))
			}
		}
	}
	if s.Time == 0 {
		r.time = math.Inf(1)
		if s.Bytes == 0 {
			r.time = math.Max(defaultTime, 300*p.RTT.Seconds())
		}
	}
	r.congestion = s.Congestion
	if r.congestion == "" {
		r.congestion = sysctl(sender, "ipv4.tcp_congestion_control")
	}
	switch r.congestion {
	case "cubic", "reno", "bbr":
	default:
		return nil, &ArgumentError{"congestion", fmt.Sprintf("no model of %q", r.congestion), "cubic, reno or bbr"}
	}
	r.segments(data, p.VPN, sender, receiver, s.MSS)
	r.line(p, data, acks)
	flow := s.FlowCap
	if data.FlowRate > 0 && (flow <= 0 || data.FlowRate < flow) {
		flow = data.FlowRate
	}
	r.capFlows(float64(flow), data, flow != data.FlowRate)
	r.sack = sysctl(sender, "ipv4.tcp_sack") == "1" && sysctl(receiver, "ipv4.tcp_sack") == "1" &&
		(data.Strip|acks.Strip)&link.SACK == 0
	r.receiver(receiver, data.Strip|acks.Strip, s)
	r.sender(sender, s)
	r.initial = model.InitialWindow
	if sender.InitialWindow > 0 {
		r.initial = float64(sender.InitialWindow)
	}
	r.rounds(p, data, acks)
	return r, nil
}

// segments computes the payload of a full segment.
func (r *scenario) segments(data link.Config, v link.VPN, sender, receiver link.Stack, bound int) {
	mtu := data.Largest(false)
	if mtu == 0 {
		mtu = defaultMTU
	}
	if v.Kind == link.WireGuard {
		mtu = v.MTU
	}
	r.headers = model.IPHeaders
	if sysctl(sender, "ipv4.tcp_timestamps") == "1" && sysctl(receiver, "ipv4.tcp_timestamps") == "1" &&
		data.Strip&link.Timestamps == 0 {
		r.headers += model.TimestampBytes
	}
	r.mss = float64(mtu) - r.headers
	if bound > 0 {
		r.mss = math.Min(r.mss, float64(bound)-(r.headers-model.IPHeaders))
	}
	r.mss = math.Max(r.mss, 1)
}

// rounds sets a window's round trip as in model.Service. A window of at most two segments is sent in halves.
func (r *scenario) rounds(p link.Path, data, acks link.Config) {
	rate := float64(data.Rate)
	if r.capped { // each connection makes its rounds at its own rate
		rate = r.rate / float64(r.connections)
	}
	if r.sendBound() { // as in model.Service.Rate
		r.trailing = 0
		return
	}
	if rate <= 0 || r.window >= math.MaxInt32 || r.overruns || p.VPN.Kind != "" {
		return
	}
	line := func(mss float64) model.Service {
		s := model.NewService(p.RTT, rate, float64(acks.Rate), int(mss), int(r.headers), data.Overhead)
		s.HalfDuplex = p.HalfDuplex
		s.DelayedAck = r.delayed
		return s
	}
	before := *r
	r.uncut = &before
	window := int(r.window)
	mss := r.mss
	if window <= 2*int(mss) {
		mss = math.Max(math.Floor(r.window/2), 1)
		if r.granted > 0 {
			r.window = math.Min(r.window, float64(model.LinuxHalvedWindow(r.granted, int(mss))))
		}
	}
	whole := line(r.mss)
	cut := line(mss)
	round, _ := cut.Round(window, int(mss))
	if window < 2*int(r.mss) { // no two halves are two full segments
		round += r.delayed
	}
	r.rtt -= (whole.Segment - cut.Segment).Seconds()
	r.trailing = (round - cut.RTT - cut.Segment - cut.Ack).Seconds()
	if mss < r.mss && !r.policed {
		r.segment *= cut.Segment.Seconds() / whole.Segment.Seconds()
		r.mss = mss
	}
}

// sendBound reports whether the send buffer is firm and limits more than the window. A window's round takes a segment
// longer. A buffer's last segment is a part: it is acknowledged at once, or later with the next one.
func (r *scenario) sendBound() bool {
	return !r.overruns && !math.IsInf(r.send, 1) && r.send*(r.rtt+r.segment) < r.window*r.rtt
}

const defaultMTU = 1500

// hosts is the two hosts' own time in a round trip, seconds: interrupts, wakeups.
const hosts = 100e-6

func (r *scenario) warn(code verdict.NoteCode) {
	r.warnings = append(r.warnings, verdict.Note{Code: code})
}

// receiverEnd returns the receiving end's name in a path's settings.
func receiverEnd(d transfer.Direction) string {
	if d == transfer.Down {
		return "near"
	}
	return "far"
}

// receiver computes the largest receive window.
func (r *scenario) receiver(receiver link.Stack, stripped link.Options, s Setup) {
	r.window = math.Inf(1)
	r.fixed = true
	r.delayed = receiver.DelayedAck
	_, _, most := triple(sysctl(receiver, "ipv4.tcp_rmem"))
	switch {
	case s.ReceiveBuffer > 0:
		r.granted = model.LinuxGranted(s.ReceiveBuffer, 0)
		window := model.LinuxReceiveWindow(r.granted, int(r.mss))
		r.window = float64(window)
		if receiver.Foreign() && window != s.ReceiveBuffer {
			r.warnings = append(r.warnings, verdict.Note{Code: verdict.WholeBufferOffered,
				Words: []string{receiver.Name, receiverEnd(s.Direction)}, Values: verdict.Values{
					"buffer_bytes": float64(s.ReceiveBuffer), "window_bytes": float64(window)}})
		}
	case receiver.Window > 0:
		r.window = float64(receiver.Window)
		r.factorZero = receiver.Clamped && s.Window == 0 && receiver.Window <= model.MaxUnscaled
	case most > 0:
		r.window = float64(automaticWindow(receiver, most, int(r.mss)))
		r.fixed = false
	}
	if s.Window > 0 {
		r.window = math.Min(r.window, float64(s.Window))
		r.fixed = true
	}
	if most := receiver.LargestWindow; most > 0 && float64(most) <= r.window {
		r.window = float64(most)
		r.factorZero = most <= model.MaxUnscaled
		r.fixed = r.fixed || r.factorZero
	}
	if sysctl(receiver, "ipv4.tcp_window_scaling") == "0" || stripped&link.WindowScale != 0 {
		r.unscaled = r.window >= model.MaxUnscaled
		r.window = math.Min(r.window, model.MaxUnscaled)
	}
}

// automaticWindow returns the window of a stack's automatic receive buffer. Other systems' buffers follow Linux 6.6 and
// later, as in the lab.
func automaticWindow(s link.Stack, largest, mss int) int {
	if version, ok := strings.CutPrefix(s.Name, "linux"); ok {
		return plan.LinuxWindow(strings.TrimPrefix(version, "-"), sysctl(s, "ipv4.tcp_adv_win_scale"), largest, mss)
	}
	return model.LinuxReceiveWindow(largest, mss)
}

// sender sets how many bytes the sender's buffer keeps in flight.
func (r *scenario) sender(sender link.Stack, s Setup) {
	r.send = math.Inf(1)
	write := s.WriteBytes
	if quota, ok := strings.CutPrefix(sender.SenderRule, "afd:"); ok {
		afd := model.AFD{Quota: s.SendBuffer}
		if s.SendBuffer == 0 {
			afd.Quota, _ = strconv.Atoi(quota)
		}
		if write == 0 {
			write = afdWrite
		}
		r.send = float64(afd.Outstanding(write))
		return
	}
	_, _, granted := triple(sysctl(sender, "ipv4.tcp_wmem"))
	fixed := s.SendBuffer > 0
	if fixed {
		granted = model.LinuxGranted(s.SendBuffer, 0)
	}
	small := write > 0 && write <= maxFirmWrite
	switch {
	case granted <= 0, !fixed && sender.Foreign(): // how far their automatic send buffers grow is not documented
		return
	case fixed && small:
		r.send = float64(model.LinuxInFlight(granted, write))
	default:
		r.send = float64(model.LinuxAutomaticInFlight(granted))
	}
	partial := small && !s.NoDelay && write%int(r.mss) != 0
	r.overruns = partial && r.send < r.bdp()*r.mss || fixed && !small && r.rate < model.UnsplitBps
	if r.overruns && r.segment > 0 {
		n := float64(r.connections)
		bdp := r.bdp() * r.mss
		r.send = math.Max(r.send, model.LinuxOverrun(n*float64(granted), bdp, math.Min(r.queue, 1e9)*r.mss)/n)
		r.warn(verdict.BufferOverrun)
	}
}

const (
	afdWrite     = 8192     // of a program that names no size, under AFD's rule
	maxFirmWrite = 64 << 10 // a larger write passes the buffer's bound in one call
)

// bdp returns the segments that fill the path.
func (r *scenario) bdp() float64 {
	if r.segment == 0 {
		return math.Inf(1)
	}
	return r.rtt / r.segment
}

// capacity returns the line's largest goodput, bit/s.
func (r *scenario) capacity() float64 {
	if r.segment == 0 {
		return math.Inf(1)
	}
	return r.mss * 8 / r.segment
}

// bound returns the goodput that the line, the window and the send buffer allow without loss, bit/s.
func (r *scenario) bound() float64 {
	return math.Min(r.capacity(), float64(r.connections)*math.Min(r.window, r.send)*8/r.rtt)
}

func sysctl(s link.Stack, name string) string {
	for _, v := range s.Sysctls {
		if v.Name == name {
			return v.Value
		}
	}
	return ""
}

func triple(text string) (least, first, most int) {
	fmt.Sscan(text, &least, &first, &most)
	return
}
