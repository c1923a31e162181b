// Package html formats records as self-contained pages: they need no other file and no
// network. The pictures need no scripts.
package html

import (
	"bytes"
	"context"
	_ "embed"
	"io"
	"strings"

	"github.com/a-h/templ"

	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/render"
	"github.com/fullpipe-net/fullpipe/internal/render/svg"
	"github.com/fullpipe-net/fullpipe/internal/render/text"
)

//go:embed page/base.css
var baseStyle string

//go:embed page/diagnose.css
var diagnoseStyle string

//go:embed page/diagnose.js
var diagnoseScript string

//go:embed page/measure.css
var measureStyle string

//go:embed page/plain.css
var plainStyle string

//go:embed page/rfc6349.css
var rfc6349Style string

//go:embed page/sweep.css
var sweepStyle string

//go:embed page/tune.css
var tuneStyle string

// BaseStyle returns the style sheet that all pages share: colours, text, tables and charts.
func BaseStyle() string { return svg.Tokens + baseStyle }

// Script lets the pictures of captured connections be zoomed and read.
func Script() string { return diagnoseScript }

// page is the page of a document in parts.
type page struct {
	title  string
	style  string // in addition to BaseStyle
	body   templ.Component
	script string // "": none
}

// pageOf returns the page of a document. A kind without a page of its own has its text.
func pageOf(doc record.Document) (page, error) {
	switch d := doc.(type) {
	case *record.Diagnose:
		return page{"fullpipe: " + fileNames(d.Files), diagnoseStyle, diagnoseBody(d), diagnoseScript}, nil
	case *record.RFC6349:
		return page{"RFC 6349 test of " + text.RFC6349Title(d), rfc6349Style, rfc6349Body(d), ""}, nil
	case *record.Sweep:
		return page{"fullpipe: sweep with " + d.Peer, sweepStyle, sweepBody(d), ""}, nil
	case *record.Tune:
		return page{"tune " + d.Peer, tuneStyle, tuneBody(d), ""}, nil
	}
	wide, narrow, err := texts(doc)
	if err != nil {
		return page{}, err
	}
	if d, ok := doc.(*record.Measure); ok {
		return page{"measure " + d.Peer, plainStyle + measureStyle, measureBody(d, wide, narrow), ""}, nil
	}
	kind, _, _ := strings.Cut(strings.TrimPrefix(doc.Head().Schema, "fullpipe/"), "/")
	return page{"fullpipe " + kind, plainStyle, plainBody(kind, doc.Head(), wide, narrow), ""}, nil
}

// narrowText is a text as wide as a telephone.
type narrowText struct{ bytes.Buffer }

func (*narrowText) Columns() int { return 46 }

// texts returns the text of a document in its wide and its narrow form.
func texts(doc record.Document) (wide, narrow string, err error) {
	var w bytes.Buffer
	var n narrowText
	if err := text.Write(&w, doc); err != nil {
		return "", "", err
	}
	if err := text.Write(&n, doc); err != nil {
		return "", "", err
	}
	return w.String(), n.String(), nil
}

// Write writes a document as one page, harmless and in one piece.
func Write(w io.Writer, doc record.Document) error {
	p, err := pageOf(render.Document(doc))
	if err != nil {
		return err
	}
	return written(w, document(p))
}

// written writes a part of a page, with its control characters escaped.
func written(w io.Writer, part templ.Component) error {
	return render.Written(w, func(w io.Writer) error { return part.Render(context.Background(), w) })
}
