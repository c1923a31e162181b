package tune

// The thresholds of the conclusions from trials: behind each its unit and its origin. Package search has those of
// windows and comparisons, verdict/threshold those of single transfers.

// Gains and ratios of goodputs.
const (
	// tenth is the gain from which on something limits.
	tenth = 1.10 // ratio | definition (docs/limiters.md)
	// alike is the ratio of two goodputs from which the path, and not a setup, limits both.
	alike = 0.95 // ratio | search.Nearly
	// farFaster is the factor from which a transfer that is faster in spite of losses shows the effect of its setup, not
	// of luck.
	farFaster = 1.5 // ratio | chosen: single runs of lossy paths mostly differ by less
	// repeatable is the difference of two results of the loop beyond their noise.
	repeatable = 0.01 // ratio | half of what search.Enough leaves: each window reaches 98 % of the best
	// keeps is the share of the baseline's goodput that a setup for Latency, or with fewer retransmissions, has to keep,
	// keepsInOneRun that of one run, keepsShown the lower bound of the interval that its proof must reach.
	keeps         = 0.95 // ratio | search.Nearly
	keepsShown    = 0.91 // ratio | less than the tenth that limits
	keepsInOneRun = 0.92 // ratio | keeps, less one run's noise of 3 %
)

// Windows.
const (
	// larger is the ratio of windows from which on the larger one does not limit any more, farLarger that from which on
	// it is far out of the way.
	larger    = 1.25 // ratio | chosen: clearly more than the tenth that limits
	farLarger = 2    // ratio | chosen: room for a queue of one BDP
	// belowBDP is the smaller of the two windows below the capacity, as a share of the model's.
	belowBDP = 0.75 // ratio | slow start sends bursts of half a window
)

// Losses and pacing.
const (
	// sameLoss and sameLossNoise bound the retransmissions of a control that ignores losses, as a multiple of the
	// baseline's and a share of the bytes: above, the losses depend on the rate.
	sameLoss      = 1.5   // ratio | chosen: counts of a dozen losses differ by a third
	sameLossNoise = 0.005 // ratio | half of PacedClean
	// fewLosses is the share of the baseline's retransmissions up to which a setup removed the losses.
	fewLosses = 1.0 / 3 // ratio | chosen: counts of a dozen losses differ by a third
	// muchRetransmitted is the share of the bytes sent from which on a chosen setup gets a warning.
	muchRetransmitted = 0.05 // ratio | chosen: what others on the path notice
	// keepsPace is the share of its pacing rate that a run below the capacity has to carry.
	keepsPace = 0.97 // ratio | lab: 0.99 and more below the line's rate, less where a queue forms
	// pacingFloor is the lowest rate to try, as a share of the best goodput so far.
	pacingFloor = 0.85 // ratio | a policer's bucket adds up to the rest to a short run
	// belowTheLine is the share of a path's rate at which no queue forms and little is given up.
	belowTheLine = 0.97 // ratio | chosen: 3 % for bursts of the pacer and errors of the rate
	// drained is how many times as long as a bucket takes to drain a paced run lasts besides.
	drained = 1.25 // ratio | chosen: the bucket is estimated from samples
	// queueSeen is the share of the samples with a queue from which on a standing queue was there.
	queueSeen = 0.1 // ratio | chosen: fewer samples are bursts
)

// Verdicts of several runs.
const (
	// agreeing is the share of runs that name the same limiter from which the others are accidents.
	agreeing = 0.8 // ratio | four of five
	// mostly is the share from which most runs name a limiter.
	mostly = 0.5 // ratio | a majority
)
