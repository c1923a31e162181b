// Package units reads and prints rates in bits per second, sizes in bytes, and times. kB is 1000 bytes, KiB 1024. A
// printed quantity can be read back.
package units

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Rate is in bits per second.
type Rate float64

// Size is in bytes.
type Size int64

var rateUnits = map[string]float64{
	"": 1, "bit": 1, "bps": 1,
	"k": 1e3, "kbit": 1e3, "kbps": 1e3,
	"m": 1e6, "mbit": 1e6, "mbps": 1e6,
	"g": 1e9, "gbit": 1e9, "gbps": 1e9,
	"t": 1e12, "tbit": 1e12, "tbps": 1e12,
}

// byteRates lists the units that separate bits from bytes by the case of one letter, or by a word.
var byteRates = map[string]float64{
	"b": 1, "kb": 1e3, "Kb": 1e3, "Mb": 1e6, "Gb": 1e9, "Tb": 1e12,
	"kb/s": 1e3, "Kb/s": 1e3, "Mb/s": 1e6, "Gb/s": 1e9, "Tb/s": 1e12,
	"kB/s": 8e3, "KB/s": 8e3, "MB/s": 8e6, "GB/s": 8e9, "TB/s": 8e12, "B/s": 8,
	"kBps": 8e3, "KBps": 8e3, "MBps": 8e6, "GBps": 8e9, "Bps": 8,
	"KiB/s": 8 << 10, "MiB/s": 8 << 20, "GiB/s": 8 << 30,
}

var sizeUnits = map[string]float64{
	"": 1, "b": 1,
	"k": 1 << 10, "kb": 1e3, "kib": 1 << 10,
	"m": 1 << 20, "mb": 1e6, "mib": 1 << 20,
	"g": 1 << 30, "gb": 1e9, "gib": 1 << 30,
	"t": 1 << 40, "tb": 1e12, "tib": 1 << 40,
	"p": 1 << 50, "pb": 1e15, "pib": 1 << 50,
}

// bareRate is the largest rate that needs a unit. Numbers up to it usually mean Mbit/s.
const bareRate = 1000

// ParseRate reads "100mbit", "28.8 kbit/s", "1G" or "64000" in any case, also "100Mb" and, in bytes, "100MB/s" and
// "12MiB/s", where the case of the b matters. The error for an ambiguous rate lists both meanings.
func ParseRate(s string) (Rate, error) {
	trimmed := strings.TrimSpace(s)
	v, unit, err := split(trimmed)
	if err != nil {
		return 0, fmt.Errorf("rate %q: %w (write it as 100mbit or 1.5gbit)", s, err)
	}
	number := strings.TrimSpace(strings.TrimSuffix(trimmed, unit))
	factor, ok := byteRates[unit]
	if !ok {
		factor, ok = rateUnits[strings.TrimSuffix(strings.ToLower(unit), "/s")]
	}
	switch {
	case unit == "" && v > 0 && v <= bareRate:
		return 0, fmt.Errorf("rate %q: %s bit/s or %s Mbit/s? (write it as %sbit or %smbit)", s, number, number, number,
			number)
	case !ok && byBytes(unit):
		big := strings.ToUpper(unit[:1])
		return 0, fmt.Errorf("rate %q: bits or bytes? (write it as %s%sbit or %s%sB/s)", s, number, strings.ToLower(big),
			number, big)
	case !ok:
		return 0, fmt.Errorf("rate %q: unknown unit %q (use bit, kbit, mbit, gbit, or kB/s, MB/s)", s, unit)
	}
	v *= factor
	if math.IsInf(v, 0) || v > 1e15 {
		return 0, fmt.Errorf("rate %q: more than 1000 Tbit/s", s)
	}
	return Rate(v), nil
}

// byBytes reports whether a unit may mean bits or bytes: mb, MB, mb/s.
func byBytes(unit string) bool {
	unit = strings.TrimSuffix(strings.TrimSuffix(strings.ToLower(unit), "/s"), "ps")
	return len(unit) == 2 && strings.ContainsAny(unit[:1], "kmgt") && unit[1] == 'b'
}

// ParseSize reads "64KiB", "150kB", "16M" (binary, as -w of other programs) or "65535". It rounds fractions of a
// byte.
func ParseSize(s string) (Size, error) {
	v, unit, err := split(strings.ToLower(strings.TrimSpace(s)))
	if err != nil {
		return 0, fmt.Errorf("size %q: %w (write it as 64KiB, 150kB or 65535)", s, err)
	}
	factor, ok := sizeUnits[unit]
	if !ok {
		return 0, fmt.Errorf("size %q: unknown unit %q (use B, kB, KiB, MB, MiB, GB, GiB)", s, unit)
	}
	v *= factor
	if v > 1<<53 {
		return 0, fmt.Errorf("size %q: more than 8 PiB", s)
	}
	return Size(math.Round(v)), nil
}

// ParseTime reads the format of time.ParseDuration. It rejects negative times and numbers without a unit.
func ParseTime(s string) (time.Duration, error) {
	d, err := time.ParseDuration(strings.ReplaceAll(strings.TrimSpace(s), " ", ""))
	if err != nil || d < 0 {
		return 0, fmt.Errorf("time %q: not a time (write it as 40ms, 0.5s or 2m)", s)
	}
	return d, nil
}

func split(s string) (float64, string, error) {
	end := strings.LastIndexAny(s, "0123456789.") + 1
	v, err := strconv.ParseFloat(s[:end], 64)
	if err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
		return 0, "", fmt.Errorf("not a number")
	}
	if v < 0 {
		return 0, "", fmt.Errorf("below zero")
	}
	return v, strings.TrimSpace(s[end:]), nil
}

// String prints three significant digits: "13.1 Mbit/s".
func (r Rate) String() string {
	return scaled(float64(r), 1000, "bit/s", "kbit/s", "Mbit/s", "Gbit/s", "Tbit/s")
}

// String prints whole bytes below 10 kB, then three digits of a binary unit: "165 KiB".
func (s Size) String() string {
	if s < 10000 {
		return strconv.FormatInt(int64(s), 10) + " B"
	}
	return scaled(float64(s), 1024, "B", "KiB", "MiB", "GiB", "TiB", "PiB")
}

// Exact prints every byte with separators: "151,840 bytes".
func (s Size) Exact() string {
	digits := strconv.FormatInt(int64(s), 10)
	for i := len(digits) - 3; i > 0 && digits[i-1] != '-'; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits + " bytes"
}

// Time prints three significant digits in the fitting unit: "40.1 ms", "2.5 s", "1m40s",
// "2h18m".
func Time(d time.Duration) string {
	switch {
	case d >= time.Hour:
		return noZeros.Replace(d.Round(time.Minute).String())
	case d >= 100*time.Second:
		return noZeros.Replace(d.Round(time.Second).String())
	}
	return scaled(float64(d), 1000, "ns", "µs", "ms", "s")
}

// Seconds converts a number of seconds to a Duration. Values out of range become the largest or smallest Duration,
// and NaN becomes 0.
func Seconds(s float64) time.Duration {
	const limit = float64(math.MaxInt64) // rounds up to 1 << 63
	switch ns := s * float64(time.Second); {
	case ns >= limit:
		return math.MaxInt64
	case ns <= -limit:
		return math.MinInt64
	case math.IsNaN(ns):
		return 0
	default:
		return time.Duration(ns)
	}
}

// Set makes a *Rate a command-line flag.
func (r *Rate) Set(s string) (err error) { *r, err = ParseRate(s); return err }

// Set makes a *Size a command-line flag.
func (s *Size) Set(text string) (err error) { *s, err = ParseSize(text); return err }

// Type names the value in a command's help.
func (r *Rate) Type() string { return "rate" }

// Type names the value in a command's help.
func (s *Size) Type() string { return "size" }

// noZeros removes zero units from the end of a time.
var noZeros = strings.NewReplacer("h0m0s", "h", "m0s", "m")

func scaled(v, step float64, names ...string) string {
	i := 0
	for math.Abs(v) >= step*0.9995 && i < len(names)-1 {
		v /= step
		i++
	}
	decimals := 2 - int(math.Floor(math.Log10(math.Max(math.Abs(v), 1))))
	text := strconv.FormatFloat(v, 'f', max(decimals, 0), 64)
	if strings.Contains(text, ".") {
		text = strings.TrimRight(strings.TrimRight(text, "0"), ".")
	}
	return text + " " + names[i]
}
