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

//go:embed page/plain.css
var plainStyle string

// narrow is a text as wide as a telephone.
type narrow struct{ bytes.Buffer }

func (*narrow) Columns() int { return 46 }

// plain is the page of kinds that have none of their own: the text, and the curves of
// measured directions.
func plain(w io.Writer, doc record.Document) error {
	page, err := template.New("plain").Parse(plainPage)
	if err != nil {
		return err
	}
	var wide bytes.Buffer
	var small narrow
	for _, w := range []io.Writer{&wide, &small} {
		if err := text.Write(w, doc); err != nil {
			return err
		}
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
	return page.Execute(w, map[string]any{"Doc": doc.Head(), "Kind": kind, "Style": style(plainStyle),
		"Wide": wide.String(), "Narrow": small.String(), "Directions": directions})
}
