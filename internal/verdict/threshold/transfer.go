package threshold

// The start of a transfer, and bursts.
const (
	// StartupSettled is the share of all later goodput that a span must reach to end the startup.
	StartupSettled = 0.9 // ratio | definition
	// StartupRounds is the length of one span that is compared, MaxStartupSpans the most of them in a transfer. Within
	// one round trip, slow start looks like line rate.
	StartupRounds   = 2  // round trips | RFC 5681, 3.1: slow start sends a window at once
	MaxStartupSpans = 40 // spans | chosen: a span of a long transfer is longer than a stall
	// LatestStartup is the share of the transfer after which a rate that has not settled never did.
	LatestStartup = 0.75 // ratio | chosen: a quarter remains for the rate after it
	// HoleRate is how many times the later rate, and HoleSegments how many segments more, arrive between two samples
	// when a hole is repaired: the data behind it had arrived before.
	HoleRate     = 3.0 // ratio | slow start doubles the rate
	HoleSegments = 4   // segments | two delayed acknowledgements (RFC 5681, 4.2)
	// BurstFaster is how much faster than everything after it a burst must be.
	BurstFaster = 1.25 // ratio | chosen: rates of one path vary by less
	// BurstSpans is the least number of spans after slow start in which a burst is searched.
	BurstSpans = 8 // spans | chosen: BurstFaster needs a mean of several
	// LatestBurst is the share of the spans in which a burst may end, BurstShare the share up to which the rest is long
	// enough for a steady rate.
	LatestBurst = 0.75 // ratio | as LatestStartup
	BurstShare  = 0.5  // ratio | definition: the rest is longer than the burst
	// BurstAlsoFast is the share of later spans that may be nearly as fast as a burst.
	BurstAlsoFast = 0.2 // ratio | chosen: data behind a hole arrive at once
)
