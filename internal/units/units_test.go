package units

import (
	"math"
	"strings"
	"testing"
	"time"
)

func TestParseRate(t *testing.T) {
	for text, want := range map[string]Rate{
		"100mbit": 100e6, "100Mbit/s": 100e6, "28.8kbit": 28800, "1G": 1e9, "64000": 64000, "2.5 Gbit/s": 2.5e9, "0": 0,
		"100Mb": 100e6, "100Mb/s": 100e6, "100 MB/s": 800e6, "12MiB/s": 12 * 8 << 20, "1.5GBps": 12e9, "100mbps": 100e6,
		"1500":   1500,
		"100bit": 100, "5kb": 5000, "64kB/s": 512e3,
	} {
		if got, err := ParseRate(text); err != nil || got != want {
			t.Errorf("ParseRate(%q) = %v, %v; want %v", text, float64(got), err, float64(want))
		}
	}
	for _, text := range []string{"", "fast", "-1mbit", "1mb", "1e400", "NaN", "9999999tbit", "100", "0.5", "999", "100MB",
		"3mB/s", "7gb",
		"1kB"} {
		if got, err := ParseRate(text); err == nil {
			t.Errorf("ParseRate(%q) = %v, want an error", text, float64(got))
		}
	}
}

// TestParseRate_AmbiguousUnits expects an error that lists both meanings.
func TestParseRate_AmbiguousUnits(t *testing.T) {
	for text, want := range map[string]string{"100": "100 bit/s or 100 Mbit/s? (write it as 100bit or 100mbit)",
		"1000": "1000 bit/s or 1000 Mbit/s?",
		"2.5":  "2.5bit or 2.5mbit", "100MB": "100mbit or 100MB/s", "3mb": "3mbit or 3MB/s", "8gb/s": "8gbit or 8GB/s"} {
		if _, err := ParseRate(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

func TestParseSize(t *testing.T) {
	for text, want := range map[string]Size{
		"64KiB": 65536, "64kB": 64000, "64K": 65536, "65535": 65535, "1.5MiB": 1572864, "151840 B": 151840, "1GB": 1e9,
		"1 PiB": 1 << 50,
	} {
		if got, err := ParseSize(text); err != nil || got != want {
			t.Errorf("ParseSize(%q) = %d, %v; want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"", "x", "-1", "1mbit", "99999999TiB"} {
		if got, err := ParseSize(text); err == nil {
			t.Errorf("ParseSize(%q) = %d, want an error", text, got)
		}
	}
}

func TestPrinted(t *testing.T) {
	for got, want := range map[string]string{
		Rate(13.1e6).String():             "13.1 Mbit/s",
		Rate(999.6e6).String():            "1 Gbit/s",
		Rate(28800).String():              "28.8 kbit/s",
		Rate(0).String():                  "0 bit/s",
		Size(8192).String():               "8192 B",
		Size(168750).String():             "165 KiB",
		Size(151840).Exact():              "151,840 bytes",
		Size(-1234).Exact():               "-1,234 bytes",
		Time(40100 * time.Microsecond):    "40.1 ms",
		Time(1500 * time.Millisecond):     "1.5 s",
		Time(3 * time.Hour):               "3h",
		Time(138 * time.Minute):           "2h18m",
		Time(10 * time.Minute):            "10m",
		Time(605 * time.Second):           "10m5s",
		Time(12345 * time.Nanosecond):     "12.3 µs",
		Time(1051 * time.Microsecond):     "1.05 ms",
		Time(250 * time.Second):           "4m10s",
		Rate(2 * 1000 * 1000000).String(): "2 Gbit/s",
	} {
		if got != want {
			t.Errorf("printed %q, want %q", got, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"100mbit", "64KiB", "40ms", "1e9", "-", "."} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if r, err := ParseRate(s); err == nil {
			again, err := ParseRate(r.String())
			if err != nil || math.Abs(float64(again-r)) > 0.005*float64(r)+0.005 {
				t.Errorf("%q printed as %q reads back as %v, %v", s, r, again, err)
			}
		}
		if b, err := ParseSize(s); err == nil {
			if again, err := ParseSize(b.String()); err != nil || math.Abs(float64(again-b)) > 0.005*float64(b) {
				t.Errorf("%q printed as %q reads back as %v, %v", s, b, again, err)
			}
		}
		if d, err := ParseTime(s); err == nil && d < 0 {
			t.Errorf("ParseTime(%q) = %v", s, d)
		}
	})
}

func TestSeconds(t *testing.T) {
	for s, want := range map[float64]time.Duration{0: 0, 1.5: 1500 * time.Millisecond, -2: -2 * time.Second,
		9223372037: math.MaxInt64, 1e300: math.MaxInt64, math.Inf(1): math.MaxInt64, math.Inf(-1): math.MinInt64,
		-9223372037: math.MinInt64} {
		if got := Seconds(s); got != want {
			t.Errorf("%v: %v, want %v", s, got, want)
		}
	}
	if got := Seconds(math.NaN()); got != 0 {
		t.Errorf("no number: %v", got)
	}
}
