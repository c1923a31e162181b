package report

import (
	"github.com/fullpipe-net/fullpipe/internal/catalog"
	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// ProgramWindow names the program whose window a verdict's evidence may speak of, by the
// two ports and the size; nil where none that is known fits.
func ProgramWindow(v verdict.Verdict, ports ...uint16) *record.ProgramWindow {
	for _, e := range v.Evidence {
		underWay := 0.0
		switch e.Code {
		case verdict.CapturedProgramWindow, verdict.WatchedProgramWindow:
			underWay = e.Values["program_window_bytes"]
		case verdict.ProgramOrBuffer:
			underWay = e.Values["outstanding_bytes"]
		}
		for _, port := range ports {
			if p, known := catalog.ProgramAt(port, underWay); known && underWay > 0 {
				return &record.ProgramWindow{Name: p.Name, WindowBytes: p.Bytes, What: p.What, Raise: p.Raise}
			}
		}
	}
	return nil
}
