// Package html formats records as self-contained pages: they need no other file and no
// network. The pictures need no scripts.
package html

import (
	"io"

	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/render"
)

// Write writes a document as one page, harmless and in one piece.
func Write(w io.Writer, doc record.Document) error {
	return render.Written(w, func(w io.Writer) error { return write(w, render.Document(doc)) })
}

func write(w io.Writer, doc record.Document) error {
	switch d := doc.(type) {
	case *record.Diagnose:
		return Diagnose(w, d)
	case *record.RFC6349:
		return RFC6349(w, d)
	case *record.Sweep:
		return Sweep(w, d)
	case *record.Tune:
		return Tune(w, d)
	}
	return plain(w, doc)
}
