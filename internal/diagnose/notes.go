package diagnose

import (
	"cmp"
	"maps"
	"slices"

	"github.com/fullpipe-net/fullpipe/internal/capture"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// maxNamedLinks is the number of unknown link types that are named.
const maxNamedLinks = 3

// captureNotes returns the notes about damage, packets that could not be read, and records out of order.
func captureNotes(a *capture.Analysis) (notes []verdict.Note) {
	add := func(code verdict.NoteCode, of string, n int64) {
		if n > 0 {
			notes = append(notes, verdict.Note{Code: code, Values: verdict.Values{of: float64(n)}})
		}
	}
	add(verdict.HeadersCut, "packets", a.Kinds[capture.Cut])
	add(verdict.Fragments, "packets", a.Kinds[capture.Fragment])
	add(verdict.Malformed, "packets", a.Kinds[capture.Malformed])
	links := slices.SortedFunc(maps.Keys(a.UnknownLinks), func(x, y capture.LinkType) int {
		return cmp.Or(cmp.Compare(a.UnknownLinks[y], a.UnknownLinks[x]), cmp.Compare(x, y))
	})
	for _, link := range links[:min(len(links), maxNamedLinks)] {
		notes = append(notes, verdict.Note{Code: verdict.UnknownLink,
			Values: verdict.Values{"packets": float64(a.UnknownLinks[link]), "link_type": float64(link)}})
	}
	add(verdict.MoreUnknownLinks, "link_types", int64(len(links)-maxNamedLinks))
	add(verdict.PacketsLost, "packets", a.Lost)
	if o := &a.Order; o.Late > 0 {
		notes = append(notes, verdict.Note{Code: verdict.RecordsSorted,
			Values: verdict.Values{"records": float64(o.Late), "behind_s": float64(o.LateMost) / 1e9}})
	}
	add(verdict.RecordsUnsorted, "records", a.Order.Unplaced)
	add(verdict.RecordsMisstamped, "records", a.Order.Misstamped)
	if o := &a.Order; o.Steps > 0 {
		notes = append(notes, verdict.Note{Code: verdict.ClockSet,
			Values: verdict.Values{"times": float64(o.Steps), "step_s": float64(o.StepMost) / 1e9}})
	}
	for _, f := range a.Files {
		if f.Damage != nil {
			notes = append(notes, verdict.Note{Code: verdict.FileDamaged, Words: []string{f.Damage.Error()}})
		}
	}
	return notes
}
