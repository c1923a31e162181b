package report

import (
	"github.com/fullpipe-net/fullpipe/internal/diagnose"
	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/record/guard"
	"github.com/fullpipe-net/fullpipe/internal/render/text"
)

// Diagnose returns the document of a finished diagnosis.
func Diagnose(h record.Header, diagnosis *diagnose.Diagnosis) *record.Diagnose {
	doc := diagnosis.Record
	doc.Header = h
	doc.Trust = text.TrustReasons(doc.Trust)
	doc.Warnings = text.Notes(doc.Warnings)
	for i := range doc.Connections {
		doc.Connections[i].Notes = text.Notes(doc.Connections[i].Notes)
		for j := range doc.Connections[i].Directions {
			d := &doc.Connections[i].Directions[j]
			guard.Captured(d, doc.Connections[i].DurationS)
			d.Trust = text.TrustReasons(d.Trust)
			d.Evidence = text.EvidenceSentences(d.Evidence)
			d.Fix = text.FixSentences(d.Fix)
			if d.Prediction != nil {
				d.Prediction.Fix = text.CapturedDirectionRemedy(d)
			}
		}
	}
	return doc
}
