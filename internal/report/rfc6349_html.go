package report

import (
	_ "embed"
	"html/template"
	"io"
	"strings"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/rfc6349"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/units"
)

//go:embed page/rfc6349.html
var rfc6349Page string

//go:embed page/rfc6349.css
var rfc6349Style string

// WriteHTML writes the report as one page that needs nothing else, for a browser or a
// printer.
func (r *RFC6349) WriteHTML(w io.Writer) error {
	page, err := template.New("rfc6349").Funcs(template.FuncMap{
		"size": func(n int64) string { return units.Size(n).String() }, "rate": rateText, "seconds": secondsText, "ratio": ratioText,
		"bytes": func(v float64) string { return units.Size(v).Exact() }, "heading": Heading, "percent": percentText, "near": (*Host).text,
		"clock": func(t *time.Time) string {
			if t == nil {
				return "–"
			}
			return t.Format("15:04:05")
		},
	}).Parse(rfc6349Page)
	if err != nil {
		return err
	}
	return page.Execute(w, map[string]any{"Doc": r, "Style": template.CSS(baseStyle + rfc6349Style), "Columns": TestColumns()})
}

func percentText(v *float64) string {
	if v == nil {
		return "–"
	}
	return strings.TrimSpace(trimmed(100**v)) + " %"
}

// Title is what the line is called.
func (r *RFC6349) Title() string {
	if r.Reference != "" {
		return r.Reference
	}
	return r.Peer
}

// Stamp is the verdict in a word.
func (r *RFC6349) Stamp() string {
	if r.Verdict == rfc6349.NotJudged {
		return "measured"
	}
	return string(r.Verdict)
}

// Of are the formulas of a direction.
func (r *RFC6349) Of(d transfer.Direction) (all []Formula) {
	for _, f := range r.Formulas {
		if f.Direction == d {
			all = append(all, f)
		}
	}
	return all
}
