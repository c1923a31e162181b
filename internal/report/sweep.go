package report

import (
	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/record/guard"
	"github.com/fullpipe-net/fullpipe/internal/render/text"
)

// Sweep completes the document of a sweep with its header and sentences.
func Sweep(h record.Header, doc *record.Sweep) {
	doc.Header = h
	guard.Sweep(doc)
	for i := range doc.Paths {
		doc.Paths[i].Fix = text.FixSentences(doc.Paths[i].Fix)
	}
}
