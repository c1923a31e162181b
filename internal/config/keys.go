package config

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"time"

	"github.com/pelletier/go-toml/v2"

	"github.com/fullpipe-net/fullpipe/internal/units"
)

// Keys are a server's keys by holder name.
type Keys struct {
	Key map[string]*Holder `toml:"key"`
}

// Holder is a key with its limits as text; "" is no limit.
type Holder struct {
	Secret   string    `toml:"secret"` // 64 hexadecimal digits
	MaxTime  string    `toml:"max-time,omitempty"`
	MaxBytes string    `toml:"max-bytes,omitempty"`
	MaxRate  string    `toml:"max-rate,omitempty"`
	From     []string  `toml:"from,omitempty"`
	Until    time.Time `toml:"until,omitempty"`
}

// Bounds are a holder's parsed limits.
type Bounds struct {
	Time  time.Duration
	Bytes units.Size
	Rate  units.Rate
	From  []netip.Prefix
}

// ParseKeys parses a server's key file. The caller checks that secrets are valid and unique.
func ParseKeys(text []byte) (*Keys, error) {
	k := &Keys{Key: map[string]*Holder{}}
	if err := Decode(bytes.NewReader(text), k, []string{"key", "secret", "max-time", "max-bytes", "max-rate", "from",
		"until"}); err != nil {
		return nil, err
	}
	for _, name := range k.Names() {
		h := k.Key[name]
		if !farName.MatchString(name) {
			return nil, fmt.Errorf("key.%s: a name is letters, digits, - and _, and begins with a letter", name)
		}
		if _, err := h.Bounds(); err != nil {
			return nil, fmt.Errorf("key.%s: %w", name, err)
		}
	}
	return k, nil
}

// Names returns the holders' names, sorted.
func (k *Keys) Names() []string { return slices.Sorted(maps.Keys(k.Key)) }

// Text returns the file's content.
func (k *Keys) Text() ([]byte, error) {
	text, err := toml.Marshal(k)
	return append([]byte("# keys of fullpipe serve --keys; fullpipe key writes them\n"), text...), err
}

// Bounds parses the limits.
func (h *Holder) Bounds() (b Bounds, err error) {
	if h.Secret == "" {
		return b, errors.New("secret is missing")
	}
	if h.MaxTime != "" {
		b.Time, err = units.ParseTime(h.MaxTime)
		if err != nil {
			return b, fmt.Errorf("max-time: %w", err)
		}
	}
	if h.MaxBytes != "" {
		b.Bytes, err = units.ParseSize(h.MaxBytes)
		if err != nil {
			return b, fmt.Errorf("max-bytes: %w", err)
		}
	}
	if h.MaxRate != "" {
		b.Rate, err = units.ParseRate(h.MaxRate)
		if err != nil {
			return b, fmt.Errorf("max-rate: %w", err)
		}
	}
	for _, text := range h.From {
		network, err := netip.ParsePrefix(text)
		if addr, single := netip.ParseAddr(text); single == nil {
			network, err = addr.Prefix(addr.BitLen())
		}
		if err != nil {
			return b, fmt.Errorf("from: %q is no network (192.0.2.0/24)", text)
		}
		b.From = append(b.From, network.Masked())
	}
	return b, nil
}

// rotatedSuffix marks the name of a replaced key.
const rotatedSuffix = "-before"

// Rotate gives a holder a new secret. The old one stays valid until the given time or its own expiry, whichever is
// first, as NAME-before, NAME-before-2 and so on.
func (k *Keys) Rotate(name, secret string, until time.Time) error {
	old := k.Key[name]
	if old == nil {
		return fmt.Errorf("no key is called %s%s", name, meant(name, k.Names()))
	}
	renewed := *old
	renewed.Secret = secret
	past := *old
	if past.Until.IsZero() || until.Before(past.Until) {
		past.Until = until
	}
	k.Key[name] = &renewed
	k.Key[k.unused(name+rotatedSuffix)] = &past
	return nil
}

// unused returns name, or if taken name-2, name-3 and so on.
func (k *Keys) unused(name string) string {
	free := name
	for n := 2; k.Key[free] != nil; n++ {
		free = fmt.Sprintf("%s-%d", name, n)
	}
	return free
}
