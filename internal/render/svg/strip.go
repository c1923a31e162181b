package svg

import (
	"fmt"
	"html"
	"strings"

	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/render/text"
)

const (
	stripCell   = 15.0
	stripHeight = 26.0
)

// Strip draws a direction's newest results as a row of cells: the colour and a bar's height
// compare each with the path's earlier results, the letter names its limiter.
func Strip(points []record.KeptPoint) Markup {
	var b strings.Builder
	width := stripCell * float64(len(points))
	fmt.Fprintf(&b, `<svg class="strip" viewBox="0 0 %g %g" width="%g" height="%g" role="img" aria-label="the last %d `+
		`results, the newest on the right">`, width, stripHeight, width, stripHeight, len(points))
	for i := range points {
		p := &points[i]
		x := stripCell * float64(i)
		level := map[record.Standing]float64{record.Lower: stripHeight - 5, record.Higher: 2}[p.Against]
		fmt.Fprintf(&b, `<g class="cell %s"><title>%s</title><rect x="%g" width="%g" height="%g" rx="2"/>`,
			html.EscapeString(string(p.Against)), html.EscapeString(text.PointText(p)), x+0.5, stripCell-1, stripHeight)
		letter := text.Letter(p.Limiter)
		if p.Against == record.NoFigures {
			letter = "×"
		}
		if level > 0 {
			fmt.Fprintf(&b, `<path class="level" d="M%g %gh%g"/>`, x+2.5, level+1.5, stripCell-5)
		}
		fmt.Fprintf(&b, `<text class="mid" x="%g" y="%g">%s</text></g>`, x+stripCell/2, stripHeight/2+4, letter)
	}
	b.WriteString(`</svg>`)
	return Markup(b.String()) // every piece is a number, a letter of ours or escaped above
}
