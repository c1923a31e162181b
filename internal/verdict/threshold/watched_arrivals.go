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

// Connections of one program that move the same data.
const (
	// LegSpan and LegBytes are what two connections must be seen for. LegApart is how far apart two samples may be that
	// count as one, and LegGap the longest time between two samples in which a rate is taken as constant.
	LegSpan  = 4 * time.Second        // time | nearly the 5 s of why
	LegBytes = 64 << 10               // bytes | 100 kbit/s for 5 s
	LegApart = 10 * time.Millisecond  // time | they are read one after the other; 1 MB at 1 Gbit/s
	LegGap   = 500 * time.Millisecond // time | ten samples, on a busy machine
	// LegDiffers is the part of the data, and LegBuffer the bytes, by which what was written may lag what was read, if
	// these are at most the part LegBuffered of the data.
	LegDiffers  = 0.02     // ratio | definition: programs that are busy with two transfers differ more
	LegBuffer   = 64 << 10 // bytes | copy buffers: socat 8 KiB, haproxy 16 KiB, nginx 8 of 8 KiB
	LegBuffered = 0.1      // ratio | definition: far more passes than is buffered
	// LegCorrelation is the correlation of the steps of two series about their mean rates. It is at least LegChance
	// standard errors, of 1/√n, of n steps that have nothing to do with each other.
	LegChance      = 4.0  // standard errors | definition: 1 in 30,000
	LegCorrelation = 0.65 // ratio | measured: proxies 0.77 to 0.99; twelve chunks each agree by 0.5 by chance
	// LegStop is the shortest stop, LegLag the longest lag of two stops, LegStops how many must agree, and LegIrregular by
	// how much their distances must vary more than their lags.
	LegStop      = 200 * time.Millisecond // time | four samples
	LegLag       = 100 * time.Millisecond // time | two samples
	LegStops     = 5                      // stops | definition
	LegIrregular = 4.0                    // ratio | definition: stops of a clock agree by chance
)
