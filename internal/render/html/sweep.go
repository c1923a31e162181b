package html

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"

	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/render/svg"
	"github.com/fullpipe-net/fullpipe/internal/render/text"
	"github.com/fullpipe-net/fullpipe/internal/units"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

//go:embed page/sweep.html
var sweepPage string

//go:embed page/sweep.css
var sweepStyle string

// Sweep writes one page that needs nothing else, not even scripts: the heat map of
// each plane of the grid, its curves, and every cell.
func Sweep(w io.Writer, s *record.Sweep) error {
	page, err := template.New("sweep").Funcs(template.FuncMap{
		"rate": text.RateText, "known": func(d units.Duration) string {
			if d == 0 {
				return "not known"
			}
			return d.String()
		}, "bytes": func(v float64) string { return units.Size(v).String() }, "asked": record.SweepSize,
		"reached":  text.ReachedText,
		"findings": text.SweepFindings, "summary": text.SweepSummary, "spread": text.SweepCellSpread,
		"marks": text.SweepCellMarks,
	}).Parse(sweepPage)
	if err != nil {
		return err
	}
	var planes []sweepFigure
	for _, p := range text.SweepPlanes(s) {
		planes = append(planes, sweepPlaneFigure(&p))
	}
	rows := make([]*record.SweepCell, len(s.Cells))
	for i := range rows {
		rows[i] = &s.Cells[i]
	}
	measured, _, predicted, missing := text.SweepCounts(s)
	cells := fmt.Sprintf("%d measured", measured)
	for _, more := range []struct {
		n    int
		kind string
	}{{predicted, "predicted"}, {missing, "not measured"}} {
		if more.n > 0 {
			cells += fmt.Sprintf(", %d %s", more.n, more.kind)
		}
	}
	return page.Execute(w, map[string]any{
		"Doc": s, "Style": style(sweepStyle), "Planes": planes, "Rows": rows, "Cells": cells,
		"Axes": text.SweepAxesText(&s.Axes),
		"Near": text.HostText(s.Near), "Far": text.HostText(s.Far), "Both": len(s.Axes.Directions) > 1,
		"Controls": len(s.Axes.Congestion) > 0,
		"Writes":   len(s.Axes.Writes) > 0,
	})
}

// sweepFigure is one plane as the page shows it.
type sweepFigure struct {
	Title    string
	Heat     template.HTML
	HeatText string
	Curves   []sweepCurves
	Limiters []verdict.Name
	Wide     bool // the heat map needs a page's width
}

type sweepCurves struct {
	SVG  template.HTML
	Text string
}

func sweepPlaneFigure(p *text.SweepPlane) sweepFigure {
	_, unit := p.Scale()
	f := sweepFigure{Title: p.Title, Heat: svg.SweepPlaneHeat(p), HeatText: p.HeatText(unit),
		Wide: len(p.Across.Values) > 8}
	for _, name := range verdict.Names() {
		for _, c := range p.All() {
			if c.GoodputBps > 0 && c.Limiter == name {
				f.Limiters = append(f.Limiters, name)
				break
			}
		}
	}
	if len(p.Across.Values) > 1 {
		f.Curves = append(f.Curves, sweepCurves{svg.SweepPlaneCurves(p, p.Across, p.Down, p.Cells, p.Knee(false)),
			fmt.Sprintf("%s over the %s, a line for each %s.", unit, p.Across.Name, p.Down.Name)})
	}
	if len(p.Down.Values) > 1 {
		turned := make([][]*record.SweepCell, len(p.Across.Values))
		for i := range turned {
			turned[i] = p.Column(i)
		}
		f.Curves = append(f.Curves, sweepCurves{svg.SweepPlaneCurves(p, p.Down, p.Across, turned, p.Knee(true)),
			fmt.Sprintf("%s over the %s, a line for each %s.", unit, p.Down.Name, p.Across.Name)})
	}
	if n := len(f.Curves); n > 0 {
		f.Curves[n-1].Text += p.CurvesText()
	}
	return f
}
