// Package html formats records as self-contained pages: they need no other file and no
// network. The pictures need no scripts.
package html

import (
	_ "embed"
	"html/template"
	"io"

	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/render"
	"github.com/fullpipe-net/fullpipe/internal/render/svg"
)

//go:embed page/base.css
var baseStyle string

// BaseStyle returns the style sheet that all pages share: colours, text, tables and charts.
func BaseStyle() string { return svg.Tokens + baseStyle }

// style returns the style sheet of a page that needs nothing else.
func style(own string) template.CSS { return template.CSS(BaseStyle() + own) }

// Write writes a document as one page, harmless and in one piece.
func Write(w io.Writer, doc record.Document) error {
	return render.Written(w, func(w io.Writer) error { return write(w, render.Document(doc)) })
}

func write(w io.Writer, doc record.Document) error {
	switch d := doc.(type) {
	case *record.Diagnose:
		return Diagnose(w, d)
	case *record.Measure:
		return measure(w, d)
	case *record.RFC6349:
		return RFC6349(w, d)
	case *record.Sweep:
		return Sweep(w, d)
	case *record.Tune:
		return Tune(w, d)
	}
	return plain(w, doc)
}
