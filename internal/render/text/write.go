// Package text formats records for people on a terminal. It has every sentence, also for the
// other formats.
package text

import (
	"fmt"
	"io"

	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/render"
)

// Rows is the number of connections of a capture that Write shows.
const Rows = 20

// Write prints any document, escaped and in one piece. It returns the first error.
func Write(w io.Writer, doc record.Document) error {
	return render.Written(w, func(w io.Writer) error {
		write(w, render.Document(doc))
		return nil
	})
}

// Connections prints at most rows of a capture's connections, with details if asked for.
func Connections(w io.Writer, doc *record.Diagnose, rows int, details bool) error {
	return render.Written(w, func(w io.Writer) error {
		Diagnose(w, render.Document(doc), rows, details)
		return nil
	})
}

// CSV prints a document as a table of comma-separated values. It returns an error if its kind
// has no table.
func CSV(w io.Writer, doc record.Document) error {
	return render.Written(w, func(w io.Writer) error {
		switch d := render.Document(doc).(type) {
		case *record.Diagnose:
			return DiagnoseCSV(w, d)
		case *record.Sweep:
			return SweepCSV(w, d)
		case *record.Measure:
			return measureCSV(w, d)
		case *record.MeasureUDP:
			return measureUDPCSV(w, d)
		}
		return fmt.Errorf("%s: there is no table of such a document", doc.Head().Schema)
	})
}

func write(w io.Writer, doc record.Document) {
	lateNote(w, doc)
	switch d := doc.(type) {
	case *record.Apply:
		Apply(w, d)
	case *record.Audit:
		Audit(w, d)
	case *record.Capacity:
		Capacity(w, d)
	case *record.Changes:
		Changes(w, d)
	case *record.Days:
		Days(w, d)
	case *record.Difference:
		Difference(w, d)
	case *record.History:
		History(w, d)
	case *record.Compare:
		Compare(w, d)
	case *record.Diagnose:
		Diagnose(w, d, Rows, false)
	case *record.Exec:
		Exec(w, d)
	case *record.CommandFailed:
		if d.Error != nil {
			fmt.Fprintln(w, Failure(*d.Error))
		}
	case *record.Measure:
		Measure(w, d)
	case *record.MeasureUDP:
		MeasureUDP(w, d)
	case *record.MeasureRequests:
		MeasureRequests(w, d)
	case *record.Plan:
		Plan(w, d)
	case *record.Predict:
		Predict(w, d)
	case *record.RFC6349:
		RFC6349(w, d)
	case *record.Recheck:
		Recheck(w, d)
	case *record.Status:
		Status(w, d)
	case *record.Sweep:
		Sweep(w, d)
	case *record.Tune:
		Tune(w, d)
	case *record.Undo:
		Undo(w, d)
	case *record.Watch:
		Watch(w, d)
	case *record.WatchKept:
		WatchKept(w, d)
	default:
		fmt.Fprintf(w, "%s: a document of a kind that has no text\n", doc.Head().Schema)
	}
}
