package svg

import (
	"fmt"
	"html"
	"math"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/render/text"
)

// The heights of a series' picture, from its top.
const (
	seriesGoodput = 250.0
	seriesBand    = 18.0 // limiters
	seriesRTT     = 90.0
	seriesLoss    = 70.0
	seriesGap     = 10.0
)

// series draws one direction of a path over time.
type series struct {
	points   []record.KeptPoint
	from, to time.Time
}

func (s *series) x(at time.Time) float64 {
	share := float64(at.Sub(s.from)) / float64(max(s.to.Sub(s.from), 1))
	return plotLeft + share*(chartWidth-plotLeft-plotRight)
}

// Series draws one direction's results over time, the oldest first: goodput and its
// usual level, the limiter, the shortest round trip, the share of retransmissions, and the changes. Colours,
// shapes and letters say the same.
func Series(direction string, points []record.KeptPoint, changes []record.PathChange) Markup {
	if len(points) == 0 {
		return ""
	}
	s := &series{points, points[0].StartedAt, points[len(points)-1].StartedAt}
	if !s.to.After(s.from) {
		s.from = s.from.Add(-time.Hour)
		s.to = s.to.Add(time.Hour)
	}
	below := []panel{{"shortest round trip", "s", seriesRTT, func(p *record.KeptPoint) *float64 { return p.RTTMinS }},
		{"segments retransmitted", "ratio", seriesLoss, func(p *record.KeptPoint) *float64 { return p.RetransmittedRatio }}}
	below = slices.DeleteFunc(below, func(one panel) bool {
		return !slices.ContainsFunc(points, func(p record.KeptPoint) bool { return one.of(&p) != nil })
	})
	bands := plotTop + seriesGoodput + 2
	bottom := bands + seriesBand
	for i := range below {
		bottom += seriesGap + below[i].height
	}
	var b strings.Builder
	fmt.Fprintf(&b, `<svg class="series" viewBox="0 0 %g %g" role="img" aria-label="goodput %s over time">`, chartWidth,
		bottom+20, html.EscapeString(direction))
	s.dates(&b, bottom)
	s.goodput(&b)
	s.bands(&b, bands)
	top := bands + seriesBand
	for i := range below {
		s.below(&b, &below[i], top+seriesGap)
		top += seriesGap + below[i].height
	}
	s.changes(&b, changes, bottom)
	b.WriteString(`</svg>`)
	return Markup(b.String()) // every piece is a number or escaped above
}

// scale draws an axis from 0 to most and returns the function from a value to its position.
func (s *series) scale(b *strings.Builder, title, unit string, most, top, height float64) func(v float64) float64 {
	if !(most > 0) || math.IsInf(most, 0) {
		most = 1
		if unit == "ratio" { // nothing was retransmitted
			most = 0.01
		}
	}
	most *= 1.1
	y := func(v float64) float64 { return top + height - math.Min(v/most, 1)*height }
	for _, v := range ticks(0, most, max(int(height/45), 2)) {
		fmt.Fprintf(b, `<path class="grid" d="M%g %.1fH%g"/><text class="left" x="%g" y="%.1f">%s</text>`, plotLeft, y(v),
			chartWidth-plotRight, plotLeft-5, y(v)+4, axisQuantity(v, unit))
	}
	fmt.Fprintf(b, `<text class="title" x="%g" y="%g">%s</text>`, plotLeft+6, top+13, title)
	return y
}

// axisQuantity prints shares as percents.
func axisQuantity(v float64, unit string) string {
	if unit == "ratio" {
		return text.Trimmed(100*v) + " %"
	}
	return quantity(v, unit)
}

func (s *series) goodput(b *strings.Builder) {
	most := 0.0
	for i := range s.points {
		if v := s.points[i].GoodputBps; v != nil {
			most = max(most, *v)
		}
	}
	y := s.scale(b, "goodput, and the usual level before", "bps", most, plotTop, seriesGoodput)
	var usual strings.Builder
	for i := range s.points {
		if p := &s.points[i]; p.UsualBps != nil {
			letter := "L"
			if usual.Len() == 0 {
				letter = "M"
			}
			fmt.Fprintf(&usual, "%s%.1f %.1f", letter, s.x(p.StartedAt), y(*p.UsualBps))
		}
	}
	fmt.Fprintf(b, `<path class="usual" d="%s"/>`, usual.String())
	for i := range s.points {
		p := &s.points[i]
		at := plotTop + seriesGoodput - 4
		if p.GoodputBps != nil {
			at = y(*p.GoodputBps)
		}
		fmt.Fprintf(b, `<path class="point %s" d="%s"><title>%s</title></path>`, html.EscapeString(string(p.Against)),
			mark(p.Against, s.x(p.StartedAt), at), html.EscapeString(text.PointText(p)))
	}
}

// mark is a shape for each standing: a circle, triangles down and up, a hollow square, a cross.
func mark(against record.Standing, x, y float64) string {
	switch against {
	case record.Lower:
		return fmt.Sprintf("M%.1f %.1fl4 -7h-8z", x, y+4)
	case record.Higher:
		return fmt.Sprintf("M%.1f %.1fl4 7h-8z", x, y-4)
	case record.NoFigures:
		return fmt.Sprintf("M%.1f %.1fl6 6m0 -6l-6 6", x-3, y-3)
	case record.TooFew:
		return fmt.Sprintf("M%.1f %.1fh5v5h-5z", x-2.5, y-2.5)
	}
	return fmt.Sprintf("M%.1f %.1fa2.5 2.5 0 1 0 5 0a2.5 2.5 0 1 0 -5 0z", x-2.5, y)
}

// bands draws the limiter from each result to the next.
func (s *series) bands(b *strings.Builder, top float64) {
	for i := 0; i < len(s.points); {
		first := &s.points[i]
		j := i + 1
		for j < len(s.points) && s.points[j].Limiter == first.Limiter {
			j++
		}
		x := s.x(first.StartedAt)
		end := s.x(s.points[min(j, len(s.points)-1)].StartedAt)
		i = j
		if first.Limiter == "" {
			continue
		}
		name := html.EscapeString(first.Limiter)
		width := max(end-x, 2)
		fmt.Fprintf(b, `<g class="limiter %s"><title>limited by %s</title><rect x="%.1f" y="%g" width="%.1f" height="%g"/>`,
			name, name, x, top, width, seriesBand)
		if width > 9 {
			fmt.Fprintf(b, `<text class="mid" x="%.1f" y="%g">%s</text>`, x+width/2, top+13, text.Letter(first.Limiter))
		}
		b.WriteString(`</g>`)
	}
}

// panel is a value of each result as a line of its own below the goodput.
type panel struct {
	title, unit string
	height      float64
	of          func(*record.KeptPoint) *float64
}

func (s *series) below(b *strings.Builder, one *panel, top float64) {
	most := 0.0
	for i := range s.points {
		if v := one.of(&s.points[i]); v != nil {
			most = max(most, *v)
		}
	}
	y := s.scale(b, one.title, one.unit, most, top, one.height)
	var line strings.Builder
	for i := range s.points {
		p := &s.points[i]
		v := one.of(p)
		if v == nil {
			continue
		}
		letter := "L"
		if line.Len() == 0 {
			letter = "M"
		}
		fmt.Fprintf(&line, "%s%.1f %.1f", letter, s.x(p.StartedAt), y(*v))
	}
	fmt.Fprintf(b, `<path class="rtt" d="%s"/>`, line.String())
}

// changes draws a line at each time of changes, with their numbers in the list next to the picture. A number is in the
// lowest row in which it overlaps no other; in a crowd the last ones have none.
func (s *series) changes(b *strings.Builder, all []record.PathChange, bottom float64) {
	const digit, rowHeight, rows = 9.0, 16.0, 14 // width of a character; rows that the chart has room for
	ends := slices.Repeat([]float64{math.Inf(-1)}, rows)
	for i := 0; i < len(all); {
		j := i + 1
		words := text.ChangeText(&all[i])
		for ; j < len(all) && all[j].At.Equal(all[i].At); j++ {
			words += "; " + text.ChangeText(&all[j])
		}
		numbers := fmt.Sprint(i + 1)
		if j > i+1 {
			numbers += fmt.Sprintf("–%d", j)
		}
		x := s.x(all[i].At)
		width := digit * float64(utf8.RuneCountInString(numbers))
		left := min(x+4, chartWidth-width)
		row := slices.IndexFunc(ends, func(end float64) bool { return left > end })
		if row < 0 {
			numbers = ""
		} else {
			ends[row] = left + width + 4
		}
		fmt.Fprintf(b, `<g class="change"><title>%s</title><path d="M%.1f %gV%g"/><text x="%.1f" y="%g">%s</text></g>`,
			html.EscapeString(words), x, plotTop, bottom, left, plotTop+seriesGoodput-6-rowHeight*float64(max(row, 0)),
			numbers)
		i = j
	}
}

// steps are the distances of dates on an axis.
var steps = []time.Duration{time.Minute, 5 * time.Minute, 15 * time.Minute, time.Hour, 3 * time.Hour, 6 * time.Hour,
	12 * time.Hour, day, 2 * day, 7 * day, 14 * day, 30 * day, 90 * day, 365 * day}

const day = 24 * time.Hour

// dates draws the axis of time.
func (s *series) dates(b *strings.Builder, bottom float64) {
	const most = 8
	step := steps[len(steps)-1]
	for _, one := range steps {
		if s.to.Sub(s.from)/one <= most {
			step = one
			break
		}
	}
	for at := s.from.UTC().Truncate(step).Add(step); !at.After(s.to); at = at.Add(step) {
		form := "2 Jan"
		switch {
		case step >= 90*day:
			form = "Jan 2006"
		case step < day && (at.Hour() != 0 || at.Minute() != 0):
			form = "15:04"
		}
		x := s.x(at)
		fmt.Fprintf(b, `<path class="grid" d="M%.1f %gV%g"/><text class="below" x="%.1f" y="%g">%s</text>`, x, plotTop,
			bottom, x, bottom+14, at.Format(form))
	}
}
