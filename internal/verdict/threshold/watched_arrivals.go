package threshold

import "time"

// Arrivals at a watched receiver.
const (
	// ArrivalGap is the longest time since the last data, and ArrivalSegments the same in segments at the mean rate,
	// at which data still counts as coming without pauses. SteadyArrivals is the share of the samples that must show so.
	ArrivalGap      = 10 * time.Millisecond // time | one tick of a kernel with HZ=100
	ArrivalSegments = 4                     // segments | two delayed acknowledgements
	SteadyArrivals  = 0.95                  // ratio | definition: nearly all the time
	// PausedGrowth is the share of the growth of the round trip from which such a time explains it.
	PausedGrowth = 0.5 // ratio | definition: a queue has two segments at least
	// FullArrivals is the least mean packet of a full link, in full segments.
	FullArrivals = 0.5 // ratio | definition: most of them
)

// Watched paths and connections with both ends on this host.
const (
	// SettledRise is the time after which a rise of a ratio is the usual level.
	SettledRise = 12 * time.Hour // time | half a day: longer than an evening
	// RememberedDays is the number of days whose extremes are kept.
	RememberedDays = 7 // days | definition: a week
	// SameBytes is the largest ratio of two ends' bytes in a period that count as one connection's.
	SameBytes = 1.5 // ratio | the ends are not read at the same time
)
