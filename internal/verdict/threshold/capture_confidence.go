package threshold

import "time"

// Confidence in a verdict on a capture.
var (
	// SureSegments and SureRounds: below either, no verdict that needs a rate has high confidence.
	SureSegments = &Number{"SureSegments", 10, "segments", "the initial congestion window (RFC 6928)"}
	SureRounds   = &Number{"SureRounds", 3, "rounds", "two rounds cannot show a trend"}
	// PausingShare of the time without anything outstanding are real pauses.
	PausingShare = &Number{"PausingShare", 0.1, "ratio", "definition"}
	// ClearPause is the length of pauses that nothing but the program explains at a tap at the sender.
	ClearPause = &Number{"ClearPause", float64(100 * time.Millisecond), "time", "capture bank, paced sockets"}
	// LastRound is the time without growth up to which a short transfer was over before its window had opened.
	LastRound = &Number{"LastRound", 2, "round trips", "the last segments and their acknowledgement"}
	// PolicedEvents is the least number of losses that show a pattern.
	PolicedEvents = &Number{"PolicedEvents", 3, "loss events", "capture bank, policer"}
	// CoarseGrain and CoarseShare: a clock that counts in longer steps than that, and than
	// that share of the round trip, is too coarse.
	CoarseGrain = &Number{"CoarseGrain", float64(500 * time.Microsecond), "time",
		"capture bank, clocks of 1 and 10 ms"}
	CoarseShare    = &Number{"CoarseShare", 0.05, "ratio", "capture bank, clocks of 1 and 10 ms"}
	CoarseSegments = &Number{"CoarseSegments", 100, "segments", "fewer times do not show a clock's step"}
	// LossAllows is how far the rate that losses allow may lie above what came, where repairs
	// take less than RepairsMatter of the time.
	LossAllows = &Number{"LossAllows", 4, "ratio",
		"Mathis et al. 1997: measured rates lie within a factor of 2 of the model's"}
	// WindowAbove is how far above the rate a window may allow for it to limit clearly.
	WindowAbove = &Number{"WindowAbove", 1.5, "ratio", "capture bank"}
)
