package html

import (
	"bytes"
	_ "embed"
	"html/template"
	"io"
	"strings"

	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/render/svg"
	"github.com/fullpipe-net/fullpipe/internal/render/text"
)

//go:embed page/plain.html
var plainPage string

// plain is the page of kinds that have none of their own: the text, and the curves of
// measured directions.
func plain(w io.Writer, doc record.Document) error {
	page, err := template.New("plain").Parse(plainPage)
	if err != nil {
		return err
	}
	var words bytes.Buffer
	if err := text.Write(&words, doc); err != nil {
		return err
	}
	type direction struct {
		Heading string
		Charts  []template.HTML
	}
	var directions []direction
	if d, ok := doc.(*record.Measure); ok {
		for i := range d.Directions {
			if charts := svg.DirectionCharts(&d.Directions[i]); charts != nil {
				directions = append(directions, direction{text.Heading(d.Directions[i].Direction), charts})
			}
		}
	}
	kind, _, _ := strings.Cut(strings.TrimPrefix(doc.Head().Schema, "fullpipe/"), "/")
	return page.Execute(w, map[string]any{"Doc": doc.Head(), "Kind": kind, "Style": template.CSS(baseStyle +
		diagnoseStyle), "Text": words.String(),
		"Directions": directions})
}
