package html

import (
	_ "embed"
	"html/template"
	"io"

	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/render/svg"
	"github.com/fullpipe-net/fullpipe/internal/render/text"
)

//go:embed page/measure.html
var measurePage string

//go:embed page/measure.css
var measureStyle string

// measure writes a measured transfer: rate, limiter and advice first, then the charts, then all figures as text.
func measure(w io.Writer, m *record.Measure) error {
	page, err := template.New("measure").Funcs(template.FuncMap{
		"host": text.HostText, "late": text.Late, "heading": text.Heading, "verdict": text.Verdict,
		"observed": text.Sentence, "headline": text.MeasureHeadline, "sharesText": text.SharesText, "shares": svg.Shares,
		"charts":  svg.DirectionCharts,
		"sampled": func(d *record.Direction) bool { return len(d.Curves.InFlight) >= 3 },
	}).Parse(measurePage)
	if err != nil {
		return err
	}
	wide, small, err := texts(m)
	if err != nil {
		return err
	}
	var directions []*record.Direction
	for i := range m.Directions {
		directions = append(directions, &m.Directions[i])
	}
	return page.Execute(w, map[string]any{"Doc": m, "Directions": directions, "Wide": wide, "Narrow": small,
		"Style": style(plainStyle + measureStyle)})
}
