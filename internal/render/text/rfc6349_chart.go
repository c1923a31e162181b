package text

import (
	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/units"
)

// RFC6349DirectionLadderText and the next two functions return the captions of the charts.
func RFC6349DirectionLadderText(d *record.RFC6349Direction) string {
	text := "Goodput by window. Dashed: the goodput that window and bottleneck allow."
	if d.CommittedBps > 0 && d.MaxTCPBps > 0 {
		text += " Red: " + units.Rate(d.MaxTCPBps).String() + ", the largest TCP rate of what was committed to."
	}
	return text
}

func RFC6349DirectionCourseText(d *record.RFC6349Direction) string {
	return "Goodput over time of one connection whose window suffices. Red: " + units.Rate(d.MaxTCPBps).String() +
		", the largest TCP rate."
}

func RFC6349DirectionRoundTripsText(d *record.RFC6349Direction) string {
	return "Its round trip. Dashed: " + d.RTT.String() + ", the idle one; the rest is queueing delay."
}
