package html

import (
	"bytes"
	_ "embed"
	"html/template"
	"io"
	"strings"

	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/render/text"
)

//go:embed page/plain.html
var plainPage string

//go:embed page/plain.css
var plainStyle string

// narrow is a text as wide as a telephone.
type narrow struct{ bytes.Buffer }

func (*narrow) Columns() int { return 46 }

// texts returns the text of a document in its wide and its narrow form.
func texts(doc record.Document) (wide, small string, err error) {
	var w bytes.Buffer
	var n narrow
	if err := text.Write(&w, doc); err != nil {
		return "", "", err
	}
	if err := text.Write(&n, doc); err != nil {
		return "", "", err
	}
	return w.String(), n.String(), nil
}

// plain is the page of kinds that have none of their own: the text.
func plain(w io.Writer, doc record.Document) error {
	page, err := template.New("plain").Parse(plainPage)
	if err != nil {
		return err
	}
	wide, small, err := texts(doc)
	if err != nil {
		return err
	}
	kind, _, _ := strings.Cut(strings.TrimPrefix(doc.Head().Schema, "fullpipe/"), "/")
	return page.Execute(w, map[string]any{"Doc": doc.Head(), "Kind": kind, "Style": style(plainStyle), "Wide": wide,
		"Narrow": small})
}
