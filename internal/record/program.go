package record

import (
	"github.com/fullpipe-net/fullpipe/internal/catalog"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// ProgramWindow is a program with a window of its own, in addition to TCP's.
type ProgramWindow struct {
	Name        string `json:"name"`
	WindowBytes int    `json:"window_bytes"`
	Description string `json:"what"`
	Raise       string `json:"raise"` // which setting does, or that none does
}

// NewProgramWindow returns the known program whose window a verdict's evidence may describe, by the two ports and the
// size, or by a receive window that only this program gives. It returns nil where none fits.
func NewProgramWindow(v verdict.Verdict, ports ...uint16) *ProgramWindow {
	for _, e := range v.Evidence {
		inFlight := 0.0
		if v.Limiter == verdict.ReceiverWindow && v.Subtype == verdict.ScaleZero && e.Limiter == v.Limiter {
			if p, known := catalog.ProgramOfWindow(int(e.Values["window_bytes"])); known {
				return named(p)
			}
		}
		switch e.Code {
		case verdict.CapturedProgramWindow, verdict.WatchedProgramWindow:
			inFlight = e.Values["program_window_bytes"]
		case verdict.ProgramOrBuffer:
			inFlight = e.Values["outstanding_bytes"]
		}
		for _, port := range ports {
			if p, known := catalog.ProgramAt(port, inFlight); known && inFlight > 0 {
				return named(p)
			}
		}
	}
	return nil
}

// NewWindowsProgramWindow returns the known program whose fixed buffer limits by a verdict's evidence, on a Windows
// host that scales windows: as its receive window, or as the most that it has in flight; nil where none fits.
func NewWindowsProgramWindow(v verdict.Verdict) *ProgramWindow {
	key := ""
	switch {
	case v.Limiter == verdict.ReceiverWindow && (v.Subtype == verdict.Fixed || v.Subtype == verdict.AutotuneCeiling):
		key = "window_bytes"
	case v.Limiter == verdict.Sender:
		key = "outstanding_bytes"
	}
	for _, e := range v.Evidence {
		if p, known := catalog.WindowsProgramOfBuffer(int(e.Values[key])); known && e.Limiter == v.Limiter {
			return named(p)
		}
	}
	return nil
}

func named(p catalog.Program) *ProgramWindow {
	return &ProgramWindow{Name: p.Name, WindowBytes: p.Bytes, Description: p.What, Raise: p.Raise}
}
