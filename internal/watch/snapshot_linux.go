package watch

import (
	"encoding/binary"
	"hash/maphash"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/sockdiag"
	"github.com/fullpipe-net/fullpipe/internal/socket"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// snapshot converts the kernel's record of a socket.
func (w *watcher) snapshot(s *sockdiag.Socket, at time.Duration) Snapshot {
	t := Snapshot{Cookie: s.Cookie, Local: s.Local, Remote: s.Remote, UID: s.UID, Inode: s.Inode, Cgroup: s.Cgroup,
		Unread: int64(s.ReadQueue), Unacked: int64(s.WriteQueue), Established: s.State == sockdiag.Established}
	if s.HasMemory {
		t.SendQueued = int64(s.Memory.SendQueued)
		t.SendBuffer = int64(s.Memory.SendBuffer)
		t.ReceiveBuffer = int64(s.Memory.ReceiveBuffer)
	}
	if len(s.Congestion) > 0 {
		name, ok := w.names[string(s.Congestion)]
		if !ok {
			name = string(s.Congestion)
			w.names[name] = name
		}
		t.Congestion = name
	}
	t.Sample.At = at
	socket.DecodeLinux(s.Info, &t.Sample)
	t.Answered = socket.AnsweredLinux(s.Info)
	t.ReceiveRTT, t.SinceData, t.SinceSent = socket.ArrivalsLinux(s.Info)
	t.DataSent, t.DataReceived = socket.DataSegmentsLinux(s.Info)
	t.Reordered = socket.ReorderedLinux(s.Info)
	t.MaxPacingBps = socket.MaxPacingLinux(s.Info)
	if closedByPeer(s) {
		t.closedByPeer()
	}
	return t
}

// closedByPeer reports whether the peer's FIN is known to have arrived: by the state or, at a socket's end, which has
// no state, by one unread byte. The kernel counts the FIN there (tcp_diag_get_info, net/ipv4/tcp_diag.c).
func closedByPeer(s *sockdiag.Socket) bool {
	switch s.State {
	case sockdiag.CloseWait, sockdiag.LastAck, sockdiag.Closing:
		return true
	case sockdiag.Closed:
		return s.ReadQueue == 1
	}
	return false
}

// fingerprint returns a hash of the kernel's record without the ages in it, which grow by themselves. Equal
// fingerprints of two dumps mean that nothing changed. It is not 0.
func (w *watcher) fingerprint(s *sockdiag.Socket) uint64 {
	b := socket.AgelessLinux(w.words[:0], s.Info)
	b = append(b, byte(s.State))
	for _, n := range [...]uint32{s.ReadQueue, s.WriteQueue, s.Inode, s.Memory.SendQueued, s.Memory.SendBuffer,
		s.Memory.ReceiveBuffer} {
		b = binary.NativeEndian.AppendUint32(b, n)
	}
	w.words = b
	return max(maphash.Bytes(w.seed, b), 1)
}

// handshake returns the options of a connection's handshake. Equal ones are shared.
func (w *watcher) handshake(s *sockdiag.Socket) *transfer.Handshake {
	h := socket.HandshakeLinux(s.Info)
	if shared := w.handshakes[*h]; shared != nil {
		return shared
	}
	if len(w.handshakes) >= maxHandshakes {
		clear(w.handshakes)
	}
	w.handshakes[*h] = h
	return h
}

// read adds a snapshot of one connection, unless nothing has changed since the last one.
func (w *watcher) read(s *sockdiag.Socket) {
	if len(s.Info) == 0 {
		return
	}
	w.activeSockets.note(s)
	fingerprint := w.fingerprint(s)
	if w.account.Unchanged(s.Cookie, fingerprint, w.dumpAt) {
		return
	}
	t := w.snapshot(s, w.now())
	if !w.cfg.Match.ends(t.Local, t.Remote) {
		if !w.cfg.Match.owned() && w.cfg.Match.selected(t.Local, t.Remote) {
			w.within++
		}
		if !w.cfg.followsNeighbours() || withinHost(t.Local, t.Remote) {
			return
		}
	}
	c := w.account.Read(t)
	c.fingerprint = fingerprint
	if c.Handshake == nil {
		c.Handshake = w.handshake(s)
		c.id = s.ID()
	}
}
