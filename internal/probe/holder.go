package probe

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"
)

// Holder is a client with a key of its own and the limits of that key.
type Holder struct {
	Name string
	Key  Key
	// From are the allowed client networks; empty: all.
	From []netip.Prefix
	// Until is when the key expires and its sessions end; zero: never.
	Until time.Time
	// Time, Bytes and Bps lower the server's Limits; 0: unchanged. A holder with any of them measures TCP only,
	// because iperf3's protocol does not identify holders.
	Time  time.Duration
	Bytes int64
	Bps   float64
}

func (h *Holder) hasLimits() bool { return h.Time > 0 || h.Bytes > 0 || h.Bps > 0 }

// isValid reports whether the key is valid now, and admits whether it is valid for a client's address.
func (h *Holder) isValid(now time.Time) bool { return h.Until.IsZero() || now.Before(h.Until) }

func (h *Holder) admits(from netip.Addr) bool {
	return len(h.From) == 0 || slices.ContainsFunc(h.From, func(p netip.Prefix) bool { return p.Contains(from.Unmap()) })
}

// AddressError reports that a client proved a key that is not valid for its address. Only who has the key learns of it.
type AddressError struct{ From netip.Addr }

func (e *AddressError) Error() string {
	return fmt.Sprintf("the key is not valid for connections from %s", e.From)
}

// narrow returns the lower of the server's and the holder's limits.
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

var errLimitedGrant = errors.New("this key has limits, which only apply to TCP; UDP needs a key without limits")

// ErrKeyEnded reports that a client's key has expired or was removed.
var ErrKeyEnded = errors.New("the key is no longer valid here")

// keyFor returns the key with the ID that a client sends in TLS. Unknown IDs and clients without one get the
// server's key. A holder at another address proves its key too, and is refused then.
func (s *Session) keyFor(id string) Key {
	has := func(k Key) bool { return k.ID().String() == id }
	if s.Holders == nil || s.useHolder(has) {
		return s.Key
	}
	for _, h := range s.Holders() {
		if has(h.Key) && h.isValid(time.Now()) {
			s.Holder = &h
			s.elsewhere = true
			return h.Key
		}
	}
	return s.Key
}

// useHolder gives the session the matching holder's key and current limits. It returns false if no matching key is
// valid for this client.
func (s *Session) useHolder(matches func(Key) bool) bool {
	if s.Holders == nil {
		return false
	}
	for _, h := range s.Holders() {
		if matches(h.Key) && h.isValid(time.Now()) && h.admits(s.Remote.Addr()) {
			if s.serverLimits == nil {
				limits := s.Hello.Limits
				s.serverLimits = &limits
			}
			s.Key = h.Key
			s.Holder = &h
			s.Hello.Limits = h.narrow(*s.serverLimits)
			return true
		}
	}
	return false
}

// keyIsValid reports whether the client's key is still valid, and updates its limits.
func (s *Session) keyIsValid() bool {
	return s.Holder == nil || s.useHolder(func(k Key) bool { return k == s.Key })
}

// keyExpired returns a channel that receives when the client's key expires; nil: never.
func (s *Session) keyExpired() <-chan time.Time {
	if s.expiresAt().IsZero() {
		return nil
	}
	return time.After(time.Until(s.expiresAt()))
}

// expiresAt returns when the client's key expires; zero: never.
func (s *Session) expiresAt() time.Time {
	if s.Holder == nil {
		return time.Time{}
	}
	return s.Holder.Until
}

// Until returns a context that ends when a key expires. A zero time means never.
func Until(ctx context.Context, expires time.Time) (context.Context, context.CancelFunc) {
	if expires.IsZero() {
		return ctx, func() {}
	}
	return context.WithDeadlineCause(ctx, expires, ErrKeyEnded)
}
