package text

import (
	"cmp"
	"fmt"
	"io"

	"github.com/fullpipe-net/fullpipe/internal/audit"
	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/units"
)

// Audit prints the audit.
func Audit(w io.Writer, a *record.Audit) {
	for i, h := range a.Hosts {
		if i > 0 {
			fmt.Fprintln(w)
		}
		name := h.Host
		switch {
		case name == "":
			name = h.File
		case h.File != "":
			name += " (" + h.File + ")"
		}
		fmt.Fprint(w, cmp.Or(name, "a host without a name"), ", ", h.System)
		if h.Version != "" {
			fmt.Fprint(w, " ", h.Version)
		}
		if a.RateBps > 0 {
			fmt.Fprintf(w, ", for %s x %s", units.Rate(a.RateBps), SecondsText(a.RTTS))
		}
		fmt.Fprintln(w)
		if len(h.Findings) == 0 {
			fmt.Fprintln(w, "  nothing found")
		}
		for _, f := range h.Findings {
			writeFinding(w, f)
		}
	}
}

func writeFinding(w io.Writer, f audit.Finding) {
	label := fmt.Sprintf("  %-8s  ", f.Grade)
	text := f.Parameter
	if f.Value != "" {
		text += " = " + f.Value
	}
	fmt.Fprintln(w, hanging(w, label, text))
	blank := fmt.Sprintf("  %-8s  ", "")
	said := f.Text
	if f.CostBps > 0 {
		said += ", a loss of " + units.Rate(f.CostBps).String()
	}
	if !f.Confirmed && f.Grade != audit.Unknown && f.Source != "" {
		said += " [not confirmed by a primary source]"
	}
	fmt.Fprintln(w, hanging(w, blank, said))
	if f.Fix != "" {
		fmt.Fprintln(w, hanging(w, blank+"try: ", f.Fix))
	}
}
