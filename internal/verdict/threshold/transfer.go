package threshold

// The start of a transfer, and bursts.
const (
	// StartupSettled is the share of all later goodput that a span must reach to end the startup.
	StartupSettled = 0.9 // ratio | definition
	// StartupRounds is the length of one judged span: within one round trip, slow start looks like line rate.
	StartupRounds = 2 // round trips | RFC 5681, 3.1: slow start sends a window at once
	// LatestStartup is the share of the transfer after which a rate that has not settled never did.
	LatestStartup = 0.75 // ratio | chosen: a quarter remains for the rate after it
	// BurstFaster is how much faster than all that follows a burst must be.
	BurstFaster = 1.25 // ratio | chosen: rates of one path vary by less
	// BurstSpans is the least number of spans after slow start in which a burst is looked for.
	BurstSpans = 8 // spans | chosen: BurstFaster needs a mean of several
	// BurstAlsoFast is the share of later spans that may be nearly as fast as a burst.
	BurstAlsoFast = 0.2 // ratio | chosen: data behind a hole arrive at once
)
