package text

import (
	"fmt"
	"math"

	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/units"
)

// betweenRows adds the rows that compare two captures of one connection.
func betweenRows(t *table, b *record.CapturedBetween) {
	name := "two captures"
	for _, line := range BetweenLines(b) {
		t.row(name, line)
		name = ""
	}
}

// BetweenLines compares two captures of one connection; nil for a single one.
func BetweenLines(b *record.CapturedBetween) (lines []string) {
	if b == nil {
		return nil
	}
	add := func(format string, values ...any) { lines = append(lines, fmt.Sprintf(format, values...)) }
	add("lost before the first tap %s, between the taps %s, past the second %s",
		units.Size(b.LostBeforeBytes), units.Size(b.LostBetweenBytes), units.Size(b.LostAfterBytes))
	if b.CommonS > 0 {
		add("both captures have %s of it, from %s on: losses and queues are of that time", SecondsText(b.CommonS),
			SecondsText(b.CommonFromS))
	}
	add("between the taps there and back %s, and %s of queue on the mean; past the second %s of queue",
		SecondsText(b.RTTMinS), SecondsText(b.QueueS), SecondsText(b.QueuePastS))
	if w := b.Ways; w != nil {
		add("each way by itself: data waited %s on the mean (a twentieth over %s), acknowledgements %s (%s)",
			SecondsText(w.DataQueueS), SecondsText(w.DataQueueMostS), SecondsText(w.AckQueueS), SecondsText(w.AckQueueMostS))
		lines = append(lines, clocksText(w))
	}
	add("judged by the %s capture", b.JudgedAt)
	return lines
}

// clocksText formats the offset and the drift of the far capture's clock against the near one's.
func clocksText(w *record.CapturedWays) string {
	ahead := "ahead of"
	faster := "faster"
	if w.ClockOffsetS < 0 {
		ahead = "behind"
	}
	if w.ClockDrift < 0 {
		faster = "slower"
	}
	return fmt.Sprintf("the far capture's clock was %s %s the near one's (to %s), and ran %.1f ppm %s; %d segments are "+
		"in both", SecondsText(math.Abs(w.ClockOffsetS)), ahead, SecondsText(w.RTTMinS/2), math.Abs(w.ClockDrift)*1e6,
		faster, w.Matched)
}
