package record

import (
	"crypto/sha256"
	"encoding/base32"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// SeriesID identifies the series that a measurement belongs to, by what was asked for. The direction is not part of it.
type SeriesID struct {
	HostID     string // of this end
	Far        string // as it was named
	Kind       string // the command, and the scheme of Far if it has one: "measure", "measure iperf3", "tune ssh" …
	Protocol   string // "tcp" or "udp"
	IPVersion  int    // 4 or 6; 0: either
	Streams    int
	Congestion string // "" is the system's own
	MSS        int    // bytes; 0 is the system's own
	Others     string // the canonical text of further options: see MeasureOptions
}

// Key returns the path's name in records: 16 characters that reveal nothing about it. Histories hold keys, so the key
// of a path never changes.
func (p SeriesID) Key() string {
	sum := sha256.Sum256(fmt.Appendf(nil, "fullpipe path v1\x00%q %q %q %q %d %d %q %d %q", p.HostID, p.Far, p.Kind,
		p.Protocol, p.IPVersion,
		max(p.Streams, 1), p.Congestion, p.MSS, p.Others))
	return strings.ToLower(base32.HexEncoding.EncodeToString(sum[:10]))
}

// MeasureOptions are the options of measure, as asked for, that SeriesID has no field for and that make another series.
type MeasureOptions struct {
	SendBuffer, ReceiveBuffer, WriteSize int64   // bytes; 0 is automatic
	PacingBps                            float64 // 0 is none
	Bidir, Capacity                      bool
	RateBps                              *float64 // of UDP; nil is the default
	Bind                                 string   // address or interface; "" is any
	Window                               int64    // bytes that the receive window may have; 0 is no bound
	DSCP                                 int
	NoDelay, Exchange, CopyData          bool
	WriteRateBps, ReadRateBps            float64 // 0 is no bound
	Datagram                             int64   // bytes of UDP payload; 0 is the default
}

// String returns the options' canonical text, with the words and units of the first stored keys: sizes and pacing are
// there when they are 0, the other options only when they were asked for.
func (o MeasureOptions) String() string {
	text := fmt.Sprintf("send-buffer=%s receive-buffer=%s write-size=%s pacing=%s ", keySize(o.SendBuffer),
		keySize(o.ReceiveBuffer), keySize(o.WriteSize), keyRate(o.PacingBps))
	if o.Bidir {
		text += "bidir=true "
	}
	if o.Capacity {
		text += "capacity=true "
	}
	if o.RateBps != nil {
		text += "rate=" + keyRate(*o.RateBps) + " "
	}
	text += BindOption(o.Bind)
	for _, option := range []struct {
		given       bool
		name, value string
	}{
		{o.Window != 0, "window", keySize(o.Window)},
		{o.DSCP != 0, "dscp", strconv.Itoa(o.DSCP)},
		{o.NoDelay, "no-delay", "true"},
		{o.Exchange, "exchange", "true"},
		{o.CopyData, "copy-data", "true"},
		{o.WriteRateBps != 0, "write-rate", keyRate(o.WriteRateBps)},
		{o.ReadRateBps != 0, "read-rate", keyRate(o.ReadRateBps)},
		{o.Datagram != 0, "datagram", keySize(o.Datagram)},
	} {
		if option.given {
			text += option.name + "=" + option.value + " "
		}
	}
	return text
}

// BindOption returns the canonical text of the address or interface that was asked for; "" for none.
func BindOption(bind string) string {
	if bind == "" {
		return ""
	}
	return "bind=" + bind + " "
}

func keySize(bytes int64) string {
	if bytes < 10_000 {
		return strconv.FormatInt(bytes, 10) + " B"
	}
	return keyQuantity(float64(bytes), 1024, "B", "KiB", "MiB", "GiB", "TiB", "PiB")
}

func keyRate(bps float64) string {
	return keyQuantity(bps, 1000, "bit/s", "kbit/s", "Mbit/s", "Gbit/s", "Tbit/s")
}

// keyQuantity rounds to three significant digits. It is not units.Size's or units.Rate's String: those may change.
func keyQuantity(v, step float64, names ...string) string {
	i := 0
	for v >= step*0.9995 && i < len(names)-1 {
		v /= step
		i++
	}
	decimals := max(2-int(math.Floor(math.Log10(max(v, 1)))), 0)
	text := strconv.FormatFloat(v, 'f', decimals, 64)
	if decimals > 0 {
		text = strings.TrimRight(strings.TrimRight(text, "0"), ".")
	}
	return text + " " + names[i]
}
