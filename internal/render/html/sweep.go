package html

import (
	"fmt"

	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/render/svg"
	"github.com/fullpipe-net/fullpipe/internal/render/text"
	"github.com/fullpipe-net/fullpipe/internal/units"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// known formats a time that may be unknown.
func known(d units.Duration) string {
	if d == 0 {
		return "not known"
	}
	return d.String()
}

// atLeast marks a figure that a buffer limited.
func atLeast(p record.SweepPath) string {
	if p.AtLeast {
		return " at least"
	}
	return ""
}

func rateOrDash(bps float64) string {
	if bps == 0 {
		return "–"
	}
	return text.RateText(&bps)
}

// sweepCells counts the cells by how their goodput is known.
func sweepCells(s *record.Sweep) string {
	measured, _, predicted, missing := text.SweepCounts(s)
	cells := fmt.Sprintf("%d measured", measured)
	if predicted > 0 {
		cells += fmt.Sprintf(", %d predicted", predicted)
	}
	if missing > 0 {
		cells += fmt.Sprintf(", %d not measured", missing)
	}
	return cells
}

func heatText(p *text.SweepPlane) string {
	_, unit := p.Scale()
	return p.HeatText(unit)
}

// planeLimiters returns the limiters of a plane's cells, for its legend.
func planeLimiters(p *text.SweepPlane) (names []verdict.Name) {
	for _, name := range verdict.Names() {
		for _, c := range p.All() {
			if c.GoodputBps > 0 && c.Limiter == name {
				names = append(names, name)
				break
			}
		}
	}
	return names
}

// sweepCurves is the goodput over one axis of a plane, a line for each value of the other.
type sweepCurves struct {
	drawing svg.Markup
	text    string
}

// planeCurves returns the curves of each axis of a plane that has several values.
func planeCurves(p *text.SweepPlane) (all []sweepCurves) {
	_, unit := p.Scale()
	if len(p.Across.Values) > 1 {
		all = append(all, sweepCurves{svg.SweepPlaneCurves(p, p.Across, p.Down, p.Cells, p.Knee(false)),
			fmt.Sprintf("%s over the %s, a line for each %s.", unit, p.Across.Name, p.Down.Name)})
	}
	if len(p.Down.Values) > 1 {
		turned := make([][]*record.SweepCell, len(p.Across.Values))
		for i := range turned {
			turned[i] = p.Column(i)
		}
		all = append(all, sweepCurves{svg.SweepPlaneCurves(p, p.Down, p.Across, turned, p.Knee(true)),
			fmt.Sprintf("%s over the %s, a line for each %s.", unit, p.Down.Name, p.Across.Name)})
	}
	if n := len(all); n > 0 {
		all[n-1].text += p.CurvesText()
	}
	return all
}
