package html

import (
	_ "embed"
	"html/template"
	"io"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/render/svg"
	"github.com/fullpipe-net/fullpipe/internal/render/text"
	"github.com/fullpipe-net/fullpipe/internal/units"
)

//go:embed page/rfc6349.html
var rfc6349Page string

//go:embed page/rfc6349.css
var rfc6349Style string

// RFC6349 writes the report as one page that needs nothing else, for a browser or a
// printer.
func RFC6349(w io.Writer, r *record.RFC6349) error {
	page, err := template.New("rfc6349").Funcs(template.FuncMap{
		"size": func(n int64) string { return units.Size(n).String() }, "rate": text.RateText, "seconds": text.SecondsText,
		"bytes": func(v float64) string { return units.Size(v).Exact() }, "heading": text.Heading,
		"percent": text.PercentText, "near": text.HostText,
		"title": text.RFC6349Title, "stamp": text.RFC6349Stamp, "verdict": text.RFC6349VerdictText, "when": text.RFC6349When,
		"committed": text.RFC6349CommittedText, "mtu": text.RFC6349MTUText, "rtt": text.RFC6349RTTText,
		"segments": text.RFC6349SegmentsText, "limits": text.RFC6349Limits,
		"bottleneck": text.RFC6349DirectionBottleneckText, "reference": text.RFC6349DirectionReferenceText,
		"criterionVerdict": text.RFC6349CriterionVerdictText, "criterionTitle": text.RFC6349CriterionTitle,
		"criterionMeasured": text.RFC6349CriterionMeasuredText, "criterionAsked": text.RFC6349CriterionAskedText,
		"ladder": svg.RFC6349DirectionLadder, "course": svg.RFC6349DirectionCourse,
		"roundTrips": svg.RFC6349DirectionRoundTrips,
		"ladderText": text.RFC6349DirectionLadderText, "courseText": text.RFC6349DirectionCourseText,
		"roundTripsText": text.RFC6349DirectionRoundTripsText,
		"testTitle":      text.RFC6349TestTitle, "testCells": text.RFC6349TestCells, "frameCells": text.RFC6349FrameCells,
		"clock": func(t *time.Time) string {
			if t == nil {
				return "–"
			}
			return t.Format("15:04:05")
		},
	}).Parse(rfc6349Page)
	if err != nil {
		return err
	}
	return page.Execute(w, map[string]any{"Doc": r, "Style": style(rfc6349Style),
		"Columns": text.TestColumns()})
}
