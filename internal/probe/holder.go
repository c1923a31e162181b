package probe

import (
	"errors"
	"net/netip"
	"slices"
	"time"
)

// Holder is somebody with a key of their own, and what that key opens.
type Holder struct {
	Name string
	Key  Key
	// From are the networks that it may be used from; none is every one.
	From []netip.Prefix
	// Until is when it stops being one; zero is never.
	Until time.Time
	// Time, Bytes and Bps narrow the server's Limits; 0 leaves them. A holder with any of
	// them measures TCP only: a test by iperf3's protocol knows no holder.
	Time  time.Duration
	Bytes int64
	Bps   float64
}

func (h *Holder) bounded() bool { return h.Time > 0 || h.Bytes > 0 || h.Bps > 0 }

// may says whether the key is one for a client from there, now.
func (h *Holder) may(from netip.Addr, now time.Time) bool {
	return (h.Until.IsZero() || now.Before(h.Until)) && (len(h.From) == 0 ||
		slices.ContainsFunc(h.From, func(p netip.Prefix) bool { return p.Contains(from.Unmap()) }))
}

// narrow is the server's limits where the holder's are no tighter.
func (h *Holder) narrow(l Limits) Limits {
	if h.Time > 0 && (l.Time == 0 || h.Time < l.Time) {
		l.Time = h.Time
	}
	if h.Bytes > 0 && (l.Bytes == 0 || h.Bytes < l.Bytes) {
		l.Bytes = h.Bytes
	}
	if h.Bps > 0 && (l.Bps == 0 || h.Bps < l.Bps) {
		l.Bps = h.Bps
	}
	return l
}

var errBoundedGrant = errors.New("this key's bounds hold for TCP, and are not known to iperf3's protocol, which " +
	"carries UDP")

// choose finds the key that a client says it will prove, by the name that it shows in
// TLS. Clients that show none, and strangers, are asked for the server's own.
func (s *Session) choose(id string) Key {
	for i := range s.Holders {
		h := &s.Holders[i]
		if h.Key.ID().String() == id && h.may(s.Remote.Addr(), time.Now()) {
			s.Key, s.Holder, s.Hello.Limits = h.Key, h, h.narrow(s.Hello.Limits)
			break
		}
	}
	return s.Key
}
