package autobuf

import (
	"net"
	"syscall"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/socket"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

const (
	shortestLook = 50 * time.Millisecond
	longestLook  = time.Second

	// leastUnsent is the lowest bound on unsent data: half of it has to last until the
	// program is scheduled and has written again, at any rate.
	leastUnsent   = 1 << 20
	defaultUnsent = 50 * time.Millisecond
)

// tuner sizes one connection's buffers for as long as it lives. Once it follows a
// connection only its looks touch it, and they come one after another.
type tuner struct {
	cfg           Config
	limits        socket.Ceilings
	known         bool // limits are
	send, receive half

	raw      syscall.RawConn
	addr     net.Addr
	begun    time.Time
	every    time.Duration
	last     transfer.Sample // the look before; At counts from begun
	settled  bool            // the handshake was looked at
	unscaled bool            // and has no window scaling
	fastest  float64         // bit/s, the best rate seen
	lowWater int
}

// prepare sets what is fixed. A socket that refuses keeps what it has: the connection
// matters more than its speed.
func (t *tuner) prepare(c syscall.RawConn) {
	if t.send.fixed > 0 || t.receive.fixed > 0 {
		t.set(c, socket.Options{Socket: transfer.Socket{SendBuffer: t.send.fixed, ReceiveBuffer: t.receive.fixed}})
	}
}

func (t *tuner) set(c syscall.RawConn, o socket.Options) {
	o.Force = t.cfg.Force
	if err := socket.Set(c, o); err != nil {
		t.log("buffers were refused", "error", err)
	}
}

// follow looks after the connection until it is closed.
func (t *tuner) follow(conn net.Conn) {
	raw, err := rawConn(conn)
	if err != nil || !t.known {
		t.release()
		return
	}
	t.addr = conn.RemoteAddr()
	t.raw = raw
	t.begun = time.Now()
	t.every = shortestLook
	time.AfterFunc(t.every, t.look)
}

// release returns the connection's charge.
func (t *tuner) release() {
	if t.cfg.Budget != nil && t.known {
		t.cfg.Budget.give(t.send.granted + t.receive.granted)
		t.send.granted = 0
		t.receive.granted = 0
	}
}

// look reads the kernel's account and acts on it. It ends with the connection, or where
// the system does not tell.
func (t *tuner) look() {
	now := transfer.Sample{At: time.Since(t.begun)}
	h, err := socket.Account(t.raw, &now)
	var send, receive int
	if err == nil {
		send, receive, err = socket.Buffers(t.raw)
	}
	if err != nil {
		t.release()
		return
	}
	if !t.settled {
		t.settled = true
		t.settle(h)
	}
	grown := t.pressed(&now) && t.grow(&t.send, useful(&now), send, t.limits.AutoSend, t.limits.Send)
	if t.grow(&t.receive, t.arriving(&now), receive, t.limits.AutoReceive, t.limits.Receive) {
		grown = true
	}
	t.boundUnsent(&now, send)
	if grown || now.Acked+now.Received > t.last.Acked+t.last.Received {
		t.every = min(max(shortestLook, 2*now.RTT), longestLook)
	} else {
		t.every = min(2*t.every, longestLook)
	}
	t.last = now
	time.AfterFunc(t.every, t.look)
}

// settle falls back where the handshake has no window scaling (RFC 7323): no window is
// above 65,535 bytes then, and larger buffers are memory for nothing.
func (t *tuner) settle(h *transfer.Handshake) {
	const largest = 65535
	if h == nil || h.SendScale >= 0 {
		return
	}
	t.unscaled = true
	t.log("the peer does not scale windows")
	before := t.send.granted + t.receive.granted
	var o socket.Options
	for h, into := range map[*half]*int{&t.send: &o.SendBuffer, &t.receive: &o.ReceiveBuffer} {
		if h.fixed > 0 || t.cfg.Budget != nil {
			h.bound(largest*t.limits.Factor, t.limits.Factor)
			*into = h.fixed
		}
	}
	t.set(t.raw, o)
	if t.cfg.Budget != nil {
		t.cfg.Budget.give(before - t.send.granted - t.receive.granted)
	}
}

// grow doubles a buffer that the connection has outgrown, as far as the system and the
// budget let it.
func (t *tuner) grow(h *half, useful, now, automatic, most int) bool {
	if t.unscaled || h.full || !h.outgrown(useful, now, automatic, t.limits.Factor) {
		return false
	}
	target := min(2*now, most)
	if target <= now {
		return false
	}
	if b := t.cfg.Budget; b != nil && target > h.granted {
		given := b.take(target-h.granted, min(target-h.granted, least))
		if given == 0 {
			return false // room may come
		}
		target = h.granted + given
	}
	h.granted = max(h.granted, target)
	h.fixed = target / t.limits.Factor
	var o socket.Options
	if h == &t.send {
		o.SendBuffer = h.fixed
	} else {
		o.ReceiveBuffer = h.fixed
		if t.limits.Clamped {
			o.Clamp = h.fixed
		}
	}
	t.set(t.raw, o)
	send, receive, err := socket.Buffers(t.raw)
	got := send
	if h == &t.receive {
		got = receive
	}
	h.full = err != nil || got <= now
	t.log("a buffer was outgrown", "receive", h == &t.receive, "from", now, "to", got)
	return !h.full
}

// useful is what a sender would keep in flight: what congestion control allows and the
// peer's window takes.
func useful(s *transfer.Sample) int {
	if s.Have&transfer.HaveSendWnd != 0 {
		return int(min(s.Cwnd, s.SendWnd))
	}
	return int(s.Cwnd)
}

// pressed says whether the send buffer, and not the path, bounds what is in flight:
// nearly all of it was sent, and congestion control would let more go. Or the kernel says
// so itself, which it does for only a part of that time (sndbuf_limited). Yes where the
// system tells neither.
func (t *tuner) pressed(s *transfer.Sample) bool {
	const matters = 0.02
	limits := s.Have&transfer.HaveLimits != 0
	queue := s.Have&transfer.HaveInFlight != 0 && s.Have&transfer.HaveNotSent != 0
	if limits && float64(s.SndbufLimited-t.last.SndbufLimited) >= matters*float64(s.At-t.last.At) {
		return true
	}
	if queue {
		return s.NotSent < s.InFlight/4 && s.InFlight < s.Cwnd/10*9
	}
	return !limits
}

// arriving is what came in the last round trip, twice: a sender that still gains speed
// sends twice as much in the next.
func (t *tuner) arriving(s *transfer.Sample) int {
	d := s.At - t.last.At
	if d <= 0 || s.Have&transfer.HaveReceived == 0 {
		return 0
	}
	return int(2 * float64(s.Received-t.last.Received) * s.RTT.Seconds() / d.Seconds())
}

// boundUnsent holds what waits in the send buffer to a time at the best rate seen.
func (t *tuner) boundUnsent(s *transfer.Sample, send int) {
	limit := t.cfg.Unsent
	if limit == 0 {
		limit = defaultUnsent
	}
	if d := s.At - t.last.At; d > 0 {
		t.fastest = max(t.fastest, float64(s.Acked-t.last.Acked)*8/d.Seconds())
	}
	if s.Have&transfer.HaveRate != 0 && !s.AppLimited {
		t.fastest = max(t.fastest, s.DeliveryBps)
	}
	bytes := max(leastUnsent, int(t.fastest/8*limit.Seconds()))
	if limit < 0 || t.fastest == 0 || bytes >= send && t.lowWater == 0 || bytes < t.lowWater/4*5 && t.lowWater > 0 {
		return
	}
	if socket.SetNotSentLowWater(t.raw, bytes) == nil {
		t.lowWater = bytes
		t.log("unsent bytes were bounded", "to", bytes)
	}
}

func (t *tuner) log(what string, args ...any) {
	if t.cfg.Logger != nil {
		t.cfg.Logger.Debug(what, append([]any{"remote", t.addr}, args...)...)
	}
}
