package config

import (
	"maps"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/testenv/must"
)

func TestKeys(t *testing.T) {
	k := must.Get(ParseKeys([]byte(`
[key.office]
secret = "aa"
max-rate = "100mbit"
max-time = "30s"
max-bytes = "10GB"
from = ["192.0.2.0/24", "2001:db8::1"]
[key.guest]
secret = "bb"
`)))(t)
	b, err := k.Key["office"].Bounds()
	if err != nil || b.Rate != 100e6 || b.Time != 30*time.Second || b.Bytes != 10e9 || len(b.From) != 2 ||
		b.From[1].Bits() != 128 {
		t.Errorf("%+v, %v", b, err)
	}
	until := time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)
	must.Do(t, k.Rotate("office", "cc", until))
	if err := k.Rotate("offise", "cc", until); err == nil || !strings.Contains(err.Error(), "(office?)") {
		t.Error(err)
	}
	text := must.Get(k.Text())(t)
	again, err := ParseKeys(text)
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	if now, past := again.Key["office"], again.Key["office-before"]; now.Secret != "cc" || now.MaxRate != "100mbit" ||
		!now.Until.IsZero() || past.Secret != "aa" || !past.Until.Equal(until) {
		t.Errorf("after a rotation:\n%s", text)
	}
	for text, want := range map[string]string{
		"[key.a]\nsecrets = \"x\"":                     "line 2: there is no setting key.a.secrets (secret?)",
		"[key.a]\nmax-time = \"3s\"":                   "secret is missing",
		"[key.a]\nsecret = \"x\"\nfrom = [\"home\"]":   "no network",
		"[key.a]\nsecret = \"x\"\nmax-rate = \"fast\"": "max-rate",
		"[key.\"a b\"]\nsecret = \"x\"":                "a name is letters",
	} {
		if _, err := ParseKeys([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// TestKeys_Rotate rotates once, twice, and with a conflicting name.
func TestKeys_Rotate(t *testing.T) {
	first := time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)
	second := first.Add(time.Hour)
	for _, tt := range []struct {
		name   string
		others map[string]string // name: secret
		until  []time.Time       // of each rotation; secrets are "1", "2", …
		want   map[string]string
	}{
		{"once", nil, []time.Time{first}, map[string]string{"x": "1", "x-before": "0"}},
		{"twice", nil, []time.Time{first, second}, map[string]string{"x": "2", "x-before": "0", "x-before-2": "1"}},
		{"another holder has the name", map[string]string{"x-before": "b"}, []time.Time{first},
			map[string]string{"x": "1", "x-before": "b", "x-before-2": "0"}},
		{"other holders have both names", map[string]string{"x-before": "b", "x-before-2": "c"}, []time.Time{first},
			map[string]string{"x": "1", "x-before": "b", "x-before-2": "c", "x-before-3": "0"}},
	} {
		k := &Keys{Key: map[string]*Holder{"x": {Secret: "0"}}}
		for name, secret := range tt.others {
			k.Key[name] = &Holder{Secret: secret}
		}
		for i, until := range tt.until {
			must.Do(t, k.Rotate("x", strconv.Itoa(i+1), until))
		}
		got := map[string]string{}
		for name, h := range k.Key {
			got[name] = h.Secret
			old, err := strconv.Atoi(h.Secret)
			if current := err == nil && old == len(tt.until); !current && err == nil && !h.Until.Equal(tt.until[old]) {
				t.Errorf("%s: %s is valid until %v", tt.name, name, h.Until)
			} else if (current || err != nil) && !h.Until.IsZero() {
				t.Errorf("%s: %s ends at %v", tt.name, name, h.Until)
			}
		}
		if !maps.Equal(got, tt.want) {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
}

// FuzzParseKeys checks that accepted key files have names and secrets and survive a round trip.
func FuzzParseKeys(f *testing.F) {
	f.Add([]byte("[key.a]\nsecret = \"00\"\nmax-time = \"60s\"\nfrom = [\"192.0.2.0/24\"]\n" +
		"until = 2027-01-01T00:00:00Z\n"))
	f.Add([]byte("[key]\na = 1\n"))
	f.Add([]byte("[key.a]\nsecret = \"x\"\nmax-rate = \"1e400\"\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		k, err := ParseKeys(text)
		if err != nil {
			return
		}
		for name, h := range k.Key {
			if name == "" || h == nil || h.Secret == "" {
				t.Fatalf("%q has no secret", name)
			}
		}
		written := must.Get(k.Text())(t)
		if again, err := ParseKeys(written); err != nil || len(again.Key) != len(k.Key) {
			t.Errorf("written it cannot be read: %v\n%s", err, written)
		}
	})
}
