package svg

import (
	"fmt"
	"html"
	"math"
	"strings"

	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// Shares draws the shares of a transfer's time as one bar, the largest first.
func Shares(s verdict.Shares) Markup {
	var b strings.Builder
	b.WriteString(`<svg class="shares" viewBox="0 0 1000 10" preserveAspectRatio="none" role="img" aria-label="shares of ` +
		`the time by limiter">`)
	at := 0.0
	for _, name := range s.Top() {
		width := 1000 * math.Min(math.Max(s[name], 0), 1)
		if width < 1 || at >= 1000 {
			continue
		}
		class := html.EscapeString(string(name))
		fmt.Fprintf(&b, `<rect class="%s" x="%.0f" width="%.0f" height="10"><title>%s %.0f %%</title></rect>`, class, at,
			math.Min(width, 1000-at), class, 100*s[name])
		at += width
	}
	b.WriteString(`</svg>`)
	return Markup(b.String()) // numbers, and names that are escaped
}
