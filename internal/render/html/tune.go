package html

import (
	_ "embed"
	"html/template"
	"io"

	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/render/svg"
	"github.com/fullpipe-net/fullpipe/internal/render/text"
	"github.com/fullpipe-net/fullpipe/internal/units"
)

//go:embed page/tune.html
var tunePage string

//go:embed page/tune.css
var tuneStyle string

// Tune writes the receipt: path, limiter, trials, proof, settings and how to take them back,
// on one page that needs nothing else.
func Tune(w io.Writer, d *record.Tune) error {
	page, err := template.New("tune").Funcs(template.FuncMap{
		"size": func(n int64) string { return units.Size(n).String() }, "seconds": text.SecondsText,
		"host": text.HostText, "late": text.Late, "receipt": text.TuneReceiptOf, "changed": text.TuneChanged,
		"charts": func(m record.TuneMeasured) []template.HTML { return svg.DirectionCharts(&m.Direction) },
		"bar":    svg.Bar,
		"measured": func(d record.TuneDirection) []record.TuneMeasured {
			if d.After == nil {
				return []record.TuneMeasured{d.Before}
			}
			return []record.TuneMeasured{d.Before, *d.After}
		},
		"both": func(before, after record.TuneMeasured) []template.HTML {
			return svg.BeforeAfterCharts(&before.Direction, &after.Direction)
		},
	}).Parse(tunePage)
	if err != nil {
		return err
	}
	return page.Execute(w, map[string]any{"Doc": d, "Style": style(tuneStyle)})
}
