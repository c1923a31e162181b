package threshold

import "time"

// Arrivals at a watched receiver.
const (
	// ArrivalGap is the longest time since the last data, and ArrivalSegments the same in segments at the mean rate,
	// at which data still counts as coming without pauses. SteadyArrivals is the share of the samples that must show so.
	ArrivalGap      = 10 * time.Millisecond // time | one tick of a kernel with HZ=100
	ArrivalSegments = 4                     // segments | two delayed acknowledgements
	SteadyArrivals  = 0.95                  // ratio | definition: nearly all the time
)
