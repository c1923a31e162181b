package record

import (
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

func TestNewProgramWindow(t *testing.T) {
	for name, c := range map[string]struct {
		limiter verdict.Name
		subtype string
		code    verdict.Code
		values  verdict.Values
		ports   []uint16
		want    string
	}{
		"a Cygwin build's window": {verdict.ReceiverWindow, verdict.ScaleZero, verdict.CapturedWindowFull,
			verdict.Values{"window_bytes": 64512}, []uint16{5001, 49152}, "cygwin"},
		"the same watched on the sender": {verdict.ReceiverWindow, verdict.ScaleZero, verdict.ReceiveWindowFull,
			verdict.Values{"window_bytes": 64512}, []uint16{22, 50000}, "cygwin"},
		"another window without scaling": {verdict.ReceiverWindow, verdict.ScaleZero, verdict.CapturedWindowFull,
			verdict.Values{"window_bytes": 63000}, []uint16{5001, 49152}, ""},
		"no scaling at all": {verdict.ReceiverWindow, verdict.ScaleZero, verdict.CapturedWindowFull,
			verdict.Values{"window_bytes": 65535}, []uint16{5001, 49152}, ""},
		"a scaled window of that size": {verdict.ReceiverWindow, verdict.AutotuneCeiling, verdict.CapturedWindowFull,
			verdict.Values{"window_bytes": 64512}, []uint16{5001, 49152}, ""},
		"an SSH channel": {verdict.Application, "", verdict.CapturedProgramWindow,
			verdict.Values{"program_window_bytes": 2_100_000, "window_bytes": 8e6}, []uint16{40000, 22}, "ssh"},
		"an SSH channel seen where it comes": {verdict.Application, verdict.ProgramWindow, verdict.WatchedProgramWindow,
			verdict.Values{"program_window_bytes": 98e6 / 8 * 0.167}, []uint16{22, 40000}, "ssh"},
	} {
		v := verdict.Verdict{Limiter: c.limiter, Subtype: c.subtype,
			Evidence: []verdict.Evidence{{Limiter: c.limiter, Code: c.code, Values: c.values}}}
		got := ""
		if p := NewProgramWindow(v, c.ports...); p != nil {
			got = p.Name
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// TestNewWindowsProgramWindow checks that a window names a program where it is scaled and does not grow, and at the
// sender what it has in flight.
func TestNewWindowsProgramWindow(t *testing.T) {
	for _, c := range []struct {
		limiter verdict.Name
		subtype string
		bytes   float64
		want    string
	}{
		{verdict.ReceiverWindow, verdict.Fixed, 212_992, "cygwin-64"},
		{verdict.ReceiverWindow, verdict.AutotuneCeiling, 65_280, "cygwin"},
		{verdict.ReceiverWindow, verdict.Fixed, 64_240, "cygwin"},
		{verdict.ReceiverWindow, verdict.AutotuneCeiling, 262_140, ""},
		{verdict.ReceiverWindow, verdict.ScaleZero, 65_280, ""},
		{verdict.ReceiverWindow, verdict.AutotuneGrowing, 64_512, ""},
		{verdict.Sender, "", 64_512, "cygwin"},
		{verdict.Sender, "", 131_072, ""},
		{verdict.Bottleneck, "", 64_512, ""},
	} {
		v := verdict.Verdict{Limiter: c.limiter, Subtype: c.subtype, Evidence: []verdict.Evidence{{Limiter: c.limiter,
			Values: verdict.Values{"window_bytes": c.bytes, "outstanding_bytes": c.bytes}}}}
		got := ""
		if p := NewWindowsProgramWindow(v); p != nil {
			got = p.Name
		}
		if got != c.want {
			t.Errorf("%s (%s), %.0f bytes: %q, want %q", c.limiter, c.subtype, c.bytes, got, c.want)
		}
	}
}
