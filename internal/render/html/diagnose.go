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

//go:embed page/diagnose.html
var diagnosePage string

//go:embed page/diagnose.css
var diagnoseStyle string

//go:embed page/diagnose.js
var diagnoseScript string

// Diagnose writes a self-contained page: the table, and the graphs of every connection
// whose points were kept. The pictures need no scripts; with scripts they can be zoomed
// and show values.
func Diagnose(w io.Writer, r *record.Diagnose) error {
	page, err := template.New("diagnose").Funcs(template.FuncMap{
		"size": func(n int64) string { return units.Size(n).String() }, "rate": text.RateText, "seconds": text.SecondsText,
		"shares": text.SharesText, "count": text.Thousands, "leftOut": text.ConnectionsLeftOut,
		"rowID": text.CapturedConnectionRowID, "handshake": text.CapturedConnectionHandshakeText,
		"observed": text.Sentence, "limited": text.CapturedDirectionLimited, "took": text.CapturedDirectionTime,
		"sentence": text.CapturedDirectionSentence, "trust": text.TrustLine,
		"drawn": svg.CapturedDirectionDrawn, "charts": svg.CapturedDirectionCharts, "points": svg.CapturedDirectionPoints,
		"keys": svg.CapturedDirectionKeys, "limiters": svg.CapturedDirectionLimiters,
	}).Parse(diagnosePage)
	if err != nil {
		return err
	}
	return page.Execute(w, map[string]any{
		"Doc": r, "Style": style(diagnoseStyle), "Script": template.JS(diagnoseScript),
	})
}
