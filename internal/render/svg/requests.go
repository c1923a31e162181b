package svg

import (
	"fmt"
	"html"
	"math"
	"strings"

	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/render/text"
)

// The distribution's picture.
const (
	binsPerDecade = 10 // of record.Turns.Distribution
	binsHeight    = 150.0
	binsTop       = 18.0 // room for the counts
	maxBins       = 120  // 10 ns to 10,000 s
)

// RequestsDistribution draws how many requests took how long, both on logarithmic scales: a few
// slow ones among thousands are visible.
func RequestsDistribution(t *record.Turns) Markup {
	bin := func(below float64) int { return int(math.Round(math.Log10(below) * binsPerDecade)) }
	counts := map[int]int64{}
	first := math.MaxInt
	last := math.MinInt
	var most int64
	for _, one := range t.Distribution {
		if !(one.BelowS > 0) || math.IsInf(one.BelowS, 0) || one.Count <= 0 {
			continue
		}
		n := bin(one.BelowS)
		counts[n] += one.Count
		first = min(first, n)
		last = max(last, n)
		most = max(most, counts[n])
	}
	if most == 0 || last-first > maxBins {
		return ""
	}
	first -= 2
	last += 2
	width := (chartWidth - plotLeft - plotRight) / float64(last-first+1)
	x := func(n int) float64 { return plotLeft + float64(n-first)*width }
	bottom := binsTop + binsHeight
	var b strings.Builder
	fmt.Fprintf(&b, `<svg class="requests" viewBox="0 0 %g %g" role="img" aria-label="requests by duration">`,
		chartWidth, bottom+22)
	for n := first; n <= last; n++ { // a mark at the right edge would be cut
		if mark, isMark := decadeMark(n - 1); isMark {
			fmt.Fprintf(&b, `<path class="grid" d="M%.1f %gV%g"/><text class="mid" x="%.1f" y="%g">%s</text>`, x(n),
				binsTop, bottom, x(n), bottom+16, text.SecondsText(mark))
		}
	}
	for n := first; n <= last; n++ {
		if counts[n] == 0 {
			continue
		}
		height := binsHeight * (0.15 + 0.85*math.Log1p(float64(counts[n]-1))/math.Max(math.Log1p(float64(most-1)), 1e-9))
		if most == 1 {
			height = binsHeight
		}
		below := math.Pow(10, float64(n)/binsPerDecade)
		above := math.Pow(10, float64(n-1)/binsPerDecade)
		fmt.Fprintf(&b, `<rect class="bin" x="%.1f" y="%.1f" width="%.1f" height="%.1f"><title>%s requests of %s to %s`+
			`</title></rect><text class="mid" x="%.1f" y="%.1f">%s</text>`, x(n)+1, bottom-height, width-2, height,
			text.Thousands(counts[n]), text.SecondsText(above), text.SecondsText(below), x(n)+width/2, bottom-height-4,
			text.Thousands(counts[n]))
	}
	b.WriteString(`</svg>`)
	return Markup(b.String()) // numbers only
}

// decadeMark returns the time at the upper end of a bin where it is 1, 2 or 5 times a power of ten.
func decadeMark(n int) (seconds float64, isMark bool) {
	rest := ((n % binsPerDecade) + binsPerDecade) % binsPerDecade
	factor, isMark := map[int]float64{0: 1, 3: 2, 7: 5}[rest]
	return factor * math.Pow(10, float64((n-rest)/binsPerDecade)), isMark
}

// SlowRequest draws one request as a bar of its parts, of a width in proportion to the longest.
func SlowRequest(t *record.SlowestTurn, longestS float64) Markup {
	if !(longestS > 0) {
		return ""
	}
	var b strings.Builder
	b.WriteString(`<svg class="shares slow" viewBox="0 0 1000 10" preserveAspectRatio="none" role="img" ` +
		`aria-label="parts of the request">`)
	at := 0.0
	for _, p := range t.Parts {
		width := 1000 * math.Min(math.Max(p.TimeS/longestS, 0), 1)
		if width == 0 || at >= 1000 {
			continue
		}
		fmt.Fprintf(&b, `<rect class="cause %s" x="%.1f" width="%.1f" height="10"><title>%s: %s, %s</title></rect>`,
			html.EscapeString(p.Cause), at, math.Min(math.Max(width, 0.5), 1000-at), html.EscapeString(p.Stage),
			html.EscapeString(text.CauseText(p.Cause)), text.SecondsText(p.TimeS))
		at += width
	}
	b.WriteString(`</svg>`)
	return Markup(b.String()) // numbers, and names that are escaped
}
