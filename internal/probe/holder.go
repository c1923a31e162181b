package probe

import (
	"context"
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
	// Until is when the key stops being valid and its sessions end; zero is never.
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

// ErrKeyEnded says that a client's key has expired or was removed.
var ErrKeyEnded = errors.New("the key is no longer valid here")

// choose finds the key that a client says it will prove, by the name that it shows in
// TLS. Clients that show none, and strangers, are asked for the server's own.
func (s *Session) choose(id string) Key {
	s.hold(func(k Key) bool { return k.ID().String() == id })
	return s.Key
}

// hold makes the session that of the holder whose key matches, with the bounds that the server has for
// it now. It reports false where no such key is valid for this client.
func (s *Session) hold(matches func(Key) bool) bool {
	if s.Holders == nil {
		return false
	}
	for _, h := range s.Holders() {
		if matches(h.Key) && h.may(s.Remote.Addr(), time.Now()) {
			if s.unheld == nil {
				limits := s.Hello.Limits
				s.unheld = &limits
			}
			s.Key = h.Key
			s.Holder = &h
			s.Hello.Limits = h.narrow(*s.unheld)
			return true
		}
	}
	return false
}

// stillHeld reports whether the client's key is still valid, and takes its bounds as they are now.
func (s *Session) stillHeld() bool {
	return s.Holder == nil || s.hold(func(k Key) bool { return k == s.Key })
}

// ended returns a channel that receives when the client's key expires; nil: never.
func (s *Session) ended() <-chan time.Time {
	if s.until().IsZero() {
		return nil
	}
	return time.After(time.Until(s.until()))
}

// until returns when the client's key expires; zero: never.
func (s *Session) until() time.Time {
	if s.Holder == nil {
		return time.Time{}
	}
	return s.Holder.Until
}

// Until returns a context that ends when a key expires; a zero time never comes.
func Until(ctx context.Context, expires time.Time) (context.Context, context.CancelFunc) {
	if expires.IsZero() {
		return ctx, func() {}
	}
	return context.WithDeadlineCause(ctx, expires, ErrKeyEnded)
}
