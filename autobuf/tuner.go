package autobuf

import (
	"net"
	"syscall"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/socket"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

const (
	minInterval = 50 * time.Millisecond // between two samples
	maxInterval = time.Second
	// An idle connection is sampled after each tenth of its idle time, so that thousands of them cost little.
	idlePart        = 10
	maxIdleInterval = time.Minute

	// minUnsent is the least limit of unsent data in bytes: half of it must last until the program runs and writes again.
	minUnsent     = 1 << 20
	defaultUnsent = 50 * time.Millisecond
)

// tuner sizes one connection's buffers until it is closed. After follow, only sample uses it, one call after another.
type tuner struct {
	cfg           Config
	limits        socket.Ceilings
	known         bool // limits are known
	send, receive buffer

	raw           syscall.RawConn
	addr          net.Addr
	startedAt     time.Time
	interval      time.Duration
	movedAt       time.Duration   // of the last sample with progress
	last          transfer.Sample // the previous sample; At counts from startedAt
	handshakeRead bool
	unscaled      bool    // no window scaling
	maxRate       float64 // bit/s
	lowWater      int     // TCP_NOTSENT_LOWAT in bytes; 0: not set
}

// prepare sets fixed buffers. An error is only logged: a slow connection is better than none.
func (t *tuner) prepare(c syscall.RawConn) {
	if t.send.fixed > 0 || t.receive.fixed > 0 {
		t.set(c, socket.Options{Socket: transfer.Socket{SendBuffer: t.send.fixed, ReceiveBuffer: t.receive.fixed}})
	}
}

func (t *tuner) set(c syscall.RawConn, o socket.Options) {
	o.Force = t.cfg.Force
	if err := socket.Set(c, o); err != nil {
		t.log("setting the buffers failed", "error", err)
	}
}

// follow samples the connection until it is closed.
func (t *tuner) follow(conn net.Conn) {
	raw, err := rawConn(conn)
	if err != nil || !t.known {
		t.release()
		return
	}
	t.addr = conn.RemoteAddr()
	t.raw = raw
	t.startedAt = time.Now()
	t.interval = minInterval
	time.AfterFunc(t.interval, t.sample)
}

// release returns the connection's charge to the budget.
func (t *tuner) release() {
	if t.cfg.Budget != nil && t.known {
		t.cfg.Budget.release(t.send.granted + t.receive.granted)
		t.send.granted = 0
		t.receive.granted = 0
	}
}

// sample reads TCP_INFO, adjusts the buffers and schedules the next sample. The samples end with the connection, or if
// the system has no TCP_INFO.
func (t *tuner) sample() {
	now := transfer.Sample{At: time.Since(t.startedAt)}
	h, err := socket.Account(t.raw, &now)
	var send, receive int
	if err == nil {
		send, receive, err = socket.Buffers(t.raw)
	}
	if err != nil {
		t.release()
		return
	}
	if !t.handshakeRead {
		t.handshakeRead = true
		t.limitUnscaled(h)
	}
	grown := t.sndbufLimited(&now) && t.grow(&t.send, useful(&now), send, t.limits.AutoSend, t.limits.Send)
	if t.grow(&t.receive, t.arriving(&now), receive, t.limits.AutoReceive, t.limits.Receive) {
		grown = true
	}
	t.limitUnsent(&now, send)
	t.schedule(&now, grown)
	t.last = now
	time.AfterFunc(t.interval, t.sample)
}

// schedule sets the interval to the next sample: two round trips while data moves.
func (t *tuner) schedule(now *transfer.Sample, grown bool) {
	if grown || now.Acked+now.Received > t.last.Acked+t.last.Received {
		t.movedAt = now.At
		t.interval = min(max(minInterval, 2*now.RTT), maxInterval)
		return
	}
	longest := min(max(maxInterval, (now.At-t.movedAt)/idlePart), maxIdleInterval)
	t.interval = min(2*t.interval, longest)
}

// limitUnscaled shrinks the buffers if the handshake has no window scaling (RFC 7323): no window exceeds 65,535 bytes,
// and larger buffers waste memory.
func (t *tuner) limitUnscaled(h *transfer.Handshake) {
	const maxUnscaled = 65535
	if h == nil || h.SendScale >= 0 {
		return
	}
	t.unscaled = true
	t.log("the peer does not scale windows")
	before := t.send.granted + t.receive.granted
	var o socket.Options
	for b, into := range map[*buffer]*int{&t.send: &o.SendBuffer, &t.receive: &o.ReceiveBuffer} {
		if b.fixed > 0 || t.cfg.Budget != nil {
			b.shrink(maxUnscaled*t.limits.Factor, t.limits.Factor)
			*into = b.fixed
		}
	}
	t.set(t.raw, o)
	if t.cfg.Budget != nil {
		t.cfg.Budget.release(before - t.send.granted - t.receive.granted)
	}
}

// grow doubles a buffer that is too small, up to the limits of the system and the budget.
func (t *tuner) grow(b *buffer, useful, granted, automatic, limit int) bool {
	if t.unscaled || b.atMax || !b.tooSmall(useful, granted, automatic, t.limits.Factor) {
		return false
	}
	target := min(2*granted, limit)
	if target <= granted {
		return false
	}
	if budget := t.cfg.Budget; budget != nil && target > b.granted {
		given := budget.take(target-b.granted, min(target-b.granted, minBuffer))
		if given == 0 {
			return false // other connections may release some
		}
		target = b.granted + given
	}
	b.granted = max(b.granted, target)
	b.fixed = target / t.limits.Factor
	var o socket.Options
	if b == &t.send {
		o.SendBuffer = b.fixed
	} else {
		o.ReceiveBuffer = b.fixed
		if t.limits.Clamped {
			o.Clamp = b.fixed
		}
	}
	t.set(t.raw, o)
	send, receive, err := socket.Buffers(t.raw)
	got := send
	if b == &t.receive {
		got = receive
	}
	b.atMax = err != nil || got <= granted
	t.log("a buffer was too small", "receive", b == &t.receive, "from", granted, "to", got)
	return !b.atMax
}

// useful returns the bytes that a sender could keep in flight: the least of cwnd and the peer's receive window.
func useful(s *transfer.Sample) int {
	if s.Have&transfer.HaveSendWnd != 0 {
		return int(min(s.Cwnd, s.SendWnd))
	}
	return int(s.Cwnd)
}

// sndbufLimited reports whether the send buffer limits the bytes in flight: nearly all data was sent, and cwnd allows
// more. The kernel's sndbuf_limited also shows it, but counts only a part of that time. It returns true if the system
// has neither.
func (t *tuner) sndbufLimited(s *transfer.Sample) bool {
	const minRatio = 0.02 // of the time
	limits := s.Have&transfer.HaveLimits != 0
	queue := s.Have&transfer.HaveInFlight != 0 && s.Have&transfer.HaveNotSent != 0
	if limits && float64(s.SndbufLimited-t.last.SndbufLimited) >= minRatio*float64(s.At-t.last.At) {
		return true
	}
	if queue {
		return s.NotSent < s.InFlight/4 && s.InFlight < s.Cwnd/10*9
	}
	return !limits
}

// arriving returns twice the bytes that arrived in the last round trip: in slow start a sender doubles its rate.
func (t *tuner) arriving(s *transfer.Sample) int {
	d := s.At - t.last.At
	if d <= 0 || s.Have&transfer.HaveReceived == 0 {
		return 0
	}
	return int(2 * float64(s.Received-t.last.Received) * s.RTT.Seconds() / d.Seconds())
}

// limitUnsent limits the unsent data in the send buffer to Config.Unsent at the largest rate so far.
func (t *tuner) limitUnsent(s *transfer.Sample, send int) {
	limit := t.cfg.Unsent
	if limit == 0 {
		limit = defaultUnsent
	}
	if d := s.At - t.last.At; d > 0 {
		t.maxRate = max(t.maxRate, float64(s.Acked-t.last.Acked)*8/d.Seconds())
	}
	if s.Have&transfer.HaveRate != 0 && !s.AppLimited {
		t.maxRate = max(t.maxRate, s.DeliveryBps)
	}
	bytes := max(minUnsent, int(t.maxRate/8*limit.Seconds()))
	if limit < 0 || t.maxRate == 0 || bytes >= send && t.lowWater == 0 || bytes < t.lowWater/4*5 && t.lowWater > 0 {
		return
	}
	if socket.SetNotSentLowWater(t.raw, bytes) == nil {
		t.lowWater = bytes
		t.log("unsent bytes are limited", "to", bytes)
	}
}

func (t *tuner) log(message string, args ...any) {
	if t.cfg.Logger != nil {
		t.cfg.Logger.Debug(message, append([]any{"remote", t.addr}, args...)...)
	}
}
