package html

import (
	"fmt"
	"strings"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/render/text"
	"github.com/fullpipe-net/fullpipe/internal/search"
	"github.com/fullpipe-net/fullpipe/internal/units"
)

// inBrackets returns the reason of a cut-off test, with a space before it.
func inBrackets(e *record.Failure) string {
	if e == nil {
		return ""
	}
	return " (" + e.Message + ")"
}

// rfc6349Path describes the path of a direction.
func rfc6349Path(d *record.RFC6349Direction) string {
	path := "bottleneck " + text.RFC6349DirectionBottleneckText(d)
	if d.BDPBytes != 0 {
		path += " · bandwidth-delay product " + units.Size(d.BDPBytes).Exact()
	}
	if d.MaxTCPBps != 0 {
		path += fmt.Sprintf(" · largest TCP rate %s, %s", text.RateText(&d.MaxTCPBps), text.RFC6349DirectionReferenceText(d))
	}
	return path
}

func rfc6349RunTitle(t *record.RFC6349Test) string {
	title := text.RFC6349TestTitle(t)
	if t.Share != 0 {
		title += ", " + text.PercentText(&t.Share)
	}
	return title
}

// rfc6349RunCells are the figures of a run as cells of a table.
func rfc6349RunCells(run *record.RFC6349Run) []string {
	const unknown = "–"
	began := unknown
	if run.StartedAt != nil {
		began = run.StartedAt.Format(time.TimeOnly)
	}
	sent := unknown
	again := unknown
	if run.RFC6349Sender != nil {
		sent = units.Size(run.SentBytes).String()
		again = units.Size(run.RetransmittedBytes).String()
	}
	rtt := unknown
	if run.RTTMean != 0 {
		rtt = run.RTTMean.String()
	}
	inFlight := unknown
	if run.InFlightBytes != 0 {
		inFlight = fmt.Sprint(run.InFlightBytes)
	}
	return []string{began, run.Duration.String(), run.Startup.String(), units.Size(run.Bytes).String(),
		text.RateText(&run.GoodputBps), text.RateText(&run.SteadyBps), sent, again, rtt, inFlight}
}

func trialsText(trials []search.CapacityTrial) string {
	var all []string
	for _, t := range trials {
		all = append(all, fmt.Sprintf("%s → %s, %s lost", text.RateText(&t.OfferedBps), text.RateText(&t.ReceivedBps),
			text.PercentText(&t.LossRatio)))
	}
	return strings.Join(all, "; ")
}
