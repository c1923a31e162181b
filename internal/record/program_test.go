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

// TestNewWindowsProgramWindow checks that a scaled window names a program only if the receiver's buffer is fixed.
func TestNewWindowsProgramWindow(t *testing.T) {
	for subtype, want := range map[string]bool{verdict.Fixed: true, verdict.AutotuneCeiling: false,
		verdict.ScaleZero: false} {
		v := verdict.Verdict{Limiter: verdict.ReceiverWindow, Subtype: subtype, Evidence: []verdict.Evidence{{
			Limiter: verdict.ReceiverWindow, Values: verdict.Values{"window_bytes": 212992}}}}
		p := NewWindowsProgramWindow(v)
		if (p != nil) != want || want && p.Name != "cygwin-64" {
			t.Errorf("%s: %+v", subtype, p)
		}
	}
}
