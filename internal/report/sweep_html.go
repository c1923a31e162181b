package report

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"strings"

	"github.com/fullpipe-net/fullpipe/internal/limiter"
	"github.com/fullpipe-net/fullpipe/internal/units"
)

//go:embed page/sweep.html
var sweepPage string

//go:embed page/sweep.css
var sweepStyle string

// WriteHTML writes one page that needs nothing else, not even scripts: the heat map of
// each plane of the grid, its curves, and every cell.
func (s *Sweep) WriteHTML(w io.Writer) error {
	page, err := template.New("sweep").Funcs(template.FuncMap{
		"rate": rateText, "seconds": func(v *float64) string {
			if v == nil {
				return "not known"
			}
			return secondsText(*v)
		}, "bytes": func(v *float64) string { return units.Size(*v).String() }, "asked": sizeOr, "reached": reachedText,
	}).Parse(sweepPage)
	if err != nil {
		return err
	}
	var planes []sweepFigure
	for i := range s.planes {
		planes = append(planes, s.planes[i].figure())
	}
	rows := make([]*SweepCell, len(s.Cells))
	for i := range rows {
		rows[i] = &s.Cells[i]
	}
	measured, _, predicted, missing := s.counts()
	cells := fmt.Sprintf("%d measured", measured)
	for _, more := range []struct {
		n    int
		what string
	}{{predicted, "predicted"}, {missing, "not measured"}} {
		if more.n > 0 {
			cells += fmt.Sprintf(", %d %s", more.n, more.what)
		}
	}
	return page.Execute(w, map[string]any{
		"Doc": s, "Style": template.CSS(baseStyle + sweepStyle), "Planes": planes, "Rows": rows, "Cells": cells, "Axes": s.Axes.text(),
		"Near": s.Near.text(), "Far": s.Far.text(), "Both": len(s.Axes.Directions) > 1, "Controls": len(s.Axes.Congestion) > 0,
		"Writes": len(s.Axes.Writes) > 0,
	})
}

// text names the axes that have more than one value.
func (a *SweepAxes) text() string {
	var names []string
	add := func(name string, sizes int, automatic bool) {
		if automatic {
			sizes++
		}
		if sizes > 1 {
			names = append(names, fmt.Sprintf("%d %s", sizes, name))
		}
	}
	add("send buffers", len(a.SendBuffers), a.SendAutomatic)
	add("receive buffers", len(a.ReceiveBuffers), a.ReceiveAutomatic)
	add("write sizes", len(a.Writes), a.WriteAutomatic)
	add("directions", len(a.Directions), false)
	add("congestion controls", len(a.Congestion), false)
	if len(names) == 0 {
		return "one cell"
	}
	return strings.Join(names, " × ")
}

// Findings and Summary are what the page says in words.
func (s *Sweep) Findings() []string { return s.findings() }

// Summary says in a line what was measured.
func (s *Sweep) Summary() string { return s.summary() }

// Marks are what else is to be said of a cell.
func (c *SweepCell) Marks() string {
	var parts []string
	for _, mark := range []struct {
		is   bool
		text string
	}{{c.Best, "best"}, {c.Enough && !c.Best, "enough"}, {c.Predicted, "predicted"}, {c.clipped(), "clipped"}, {c.measured() && !c.Tight && len(c.Runs) > 1, "loose"},
		{c.Unsettled, "not settled"}, {c.Refused != "", "not available"}, {len(c.Problems) > 0, "failed: " + strings.Join(c.Problems, "; ")}} {
		if mark.is {
			parts = append(parts, mark.text)
		}
	}
	return strings.Join(parts, ", ")
}

func reachedText(b *Buffer) string {
	if b == nil || b.EffectiveBytes == nil {
		return ""
	}
	return units.Size(*b.EffectiveBytes).String()
}

// sweepFigure is one plane as the page shows it.
type sweepFigure struct {
	Title    string
	Heat     template.HTML
	HeatText string
	Curves   []sweepCurves
	Limiters []limiter.Name
	Wide     bool // the heat map needs a page's width
}

type sweepCurves struct {
	SVG  template.HTML
	Text string
}

func (p *sweepPlane) figure() sweepFigure {
	_, unit := p.scale()
	f := sweepFigure{Title: p.title, Heat: p.heat(), HeatText: p.heatText(unit), Wide: len(p.across.values) > 8}
	for _, name := range limiter.Names() {
		for _, c := range p.all() {
			if c.GoodputBps != nil && c.Limiter == name {
				f.Limiters = append(f.Limiters, name)
				break
			}
		}
	}
	if len(p.across.values) > 1 {
		f.Curves = append(f.Curves, sweepCurves{p.curves(p.across, p.down, p.cells, p.knee(false)), fmt.Sprintf("%s over the %s, a line for each %s.", unit, p.across.name, p.down.name)})
	}
	if len(p.down.values) > 1 {
		turned := make([][]*SweepCell, len(p.across.values))
		for i := range turned {
			turned[i] = p.column(i)
		}
		f.Curves = append(f.Curves, sweepCurves{p.curves(p.down, p.across, turned, p.knee(true)), fmt.Sprintf("%s over the %s, a line for each %s.", unit, p.down.name, p.across.name)})
	}
	if n := len(f.Curves); n > 0 {
		f.Curves[n-1].Text += p.curvesText()
	}
	return f
}

// curvesText explains the signs that the curves use.
func (p *sweepPlane) curvesText() string {
	text := " Bars are 95 % intervals"
	for _, c := range p.all() {
		if c.Predicted {
			text += ", open circles predictions"
			break
		}
	}
	if p.bounded() {
		text += "; dashed is the model: one buffer a round trip, up to what the path carries"
	}
	return text + "."
}

// heatText explains the signs that the heat map uses.
func (p *sweepPlane) heatText(unit string) string {
	text := unit + " by " + p.across.name + " and " + p.down.name + "; below each number what limited it."
	used := func(meaning string, is func(*SweepCell) bool) {
		for _, c := range p.all() {
			if is(c) {
				text += " " + meaning
				return
			}
		}
	}
	used("Framed: the best.", func(c *SweepCell) bool { return c.Best })
	used("Dashed frame: the smallest buffers within 2 % of it.", func(c *SweepCell) bool { return c.Enough && !c.Best })
	used("Hatched: predicted, not measured.", func(c *SweepCell) bool { return c.Predicted })
	used("Cut corner: the system gave less than was asked.", func(c *SweepCell) bool { return c.clipped() })
	if !p.receives || !p.bounded() {
		return text
	}
	_, alongSend := p.across.position(*p.path.BDPBytes)
	_, alongReceive := p.down.position(*p.path.BDPBytes)
	if alongSend || alongReceive {
		text += fmt.Sprintf(" Dotted: the bandwidth-delay product, %s.", units.Size(*p.path.BDPBytes))
	}
	var knees []string
	for i, axis := range []sweepAxis{p.across, p.down} {
		if _, drawn := axis.position(p.knee(i == 1)); drawn {
			knees = append(knees, fmt.Sprintf("%ss of %s", axis.name, units.Size(p.knee(i == 1))))
		}
	}
	if len(knees) > 0 {
		text += " Red: the knee; from " + strings.Join(knees, " and ") + " on the model expects a full path."
	}
	return text
}

// bounded says that the path's BDP is known, and not only that it is at least so large.
func (p *sweepPlane) bounded() bool {
	return p.path != nil && p.path.BDPBytes != nil && !p.path.AtLeast
}

// knee is where an axis's requests come to the BDP: the model's if it knows what the
// systems make of them; 0 where that axis is no buffer or nothing is known.
func (p *sweepPlane) knee(down bool) float64 {
	switch {
	case !p.bounded() || down && !p.receives:
		return 0
	case down && p.path.KneeReceiveBytes != nil:
		return *p.path.KneeReceiveBytes
	case !down && p.path.KneeSendBytes != nil:
		return *p.path.KneeSendBytes
	}
	return *p.path.BDPBytes
}
