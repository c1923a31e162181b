package threshold

import "time"

// Watched connections.
const (
	// WatchedSamples of a connection make a window that is judged by its samples.
	WatchedSamples = 20 // samples | 1 s of why, 2 s of watch
	// WatchedBytes is the payload of a direction in a period below which nothing is judged.
	WatchedBytes = 16 << 10 // bytes | a question or an acknowledgement of the program's own
	// FullBuffer is the share of the send buffer from which a writer sleeps, and RoomyBuffer the share below which
	// it surely does not.
	FullBuffer  = 2.0 / 3 // ratio | net/core/stream.c, sk_stream_write_space: woken when a third is free
	RoomyBuffer = 0.5     // ratio | the same: surely awake
	// FilledBuffer is the share that a waiting writer has reached.
	FilledBuffer = 0.95 // ratio | sk_stream_memory_free: one segment more is let in
	// SmallMessages is the mean size of a direction's segments, in full ones, below which its messages have one segment.
	SmallMessages = 0.5 // ratio | arithmetic: one of two segments or more has a greater mean
	// SeveralSamples agree on more than a moment's state.
	SeveralSamples = 3 // samples | more than one moment's luck
	// QueuedRTT is the least multiple of the least RTT that shows a queue. BurstRate is the multiple of the rate from
	// which the fastest delivery shows that the queue is of the sender's own bursts.
	QueuedRTT = 1.5  // ratio | not recorded
	BurstRate = 1.25 // ratio | a full link delivers at its rate
	// FilledQueue is the least delay of a queue that is somebody's. The connection that fills it has FillerShare of the
	// payload of all to the same host and FillerBytes in a period, and at least SameQueue of the delay itself.
	FilledQueue = 5 * time.Millisecond // time | TestNameFillers: above the scatter of idle paths
	FillerShare = 0.5                  // ratio | definition: most of it
	FillerBytes = 256 << 10            // bytes | 1 Mbit/s in a period of 2 s
	SameQueue   = 0.5                  // ratio | smoothed round trips of one queue differ by their ages
	// OutstandingShare is the share of a period in which data must be outstanding for a connection to be stalled.
	OutstandingShare = 0.9 // ratio | nearly all the time
	// RatedBytes is the payload of a period whose rate counts for the path, and RwndLimitedShare the largest
	// rwnd-limited share of it.
	RatedBytes       = 64 << 10 // bytes | not recorded
	RwndLimitedShare = 0.1      // ratio | not recorded
)

// Paths that have changed, by windows of five minutes.
const (
	// WindowTrips connections begun in a window give its least RTT, and WindowRates samples its rate.
	WindowTrips = 2  // connections | not recorded
	WindowRates = 10 // samples | not recorded
	// LearntDays must be known of what varies with the hour, the present day included.
	LearntDays = 2 // days | one day before
	// TripWindows in a row must exceed all RTTs before, by TripShift at least, by the factor TripBeyond over the last
	// days' extremes, and by TripScatter times the standard deviation.
	TripWindows = 4                // windows | TestAQuietHostIsLeftInPeace, TestAStepIsFound
	TripShift   = time.Millisecond // time | hosts' own scatter
	TripBeyond  = 1.05             // ratio | TestAQuietHostIsLeftInPeace
	TripScatter = 4                // standard deviations | TestAQuietHostIsLeftInPeace
	// RateWindows in a row must lie below the least rate of such a span in the last days, divided by RateBeyond.
	// RateBack windows in a row above half-way end the fall.
	RateWindows = 12  // windows | an hour: the capacity left by other traffic varies for hours
	RateBeyond  = 1.5 // ratio | TestAQuietHostIsLeftInPeace
	RateBack    = 4   // windows | TestAQuietHostIsLeftInPeace
	// CountsAfter windows in a row must show the rise of a ratio over CountsBefore windows. CountsFactor is how far
	// apart their intervals must be, and CountsZ the quantile of the intervals.
	CountsBefore = 48  // windows | four hours
	CountsAfter  = 6   // windows | losses come together
	CountsFactor = 2   // ratio | TestAQuietHostIsLeftInPeace
	CountsZ      = 3.3 // standard deviations | Wilson's interval of 99.9 %
	// CountsSegments is what a window must have sent. LossFloor and ReorderingFloor are the ratios that every window of
	// a rise must reach.
	CountsSegments  = 1000  // segments | arithmetic: two losses at LossFloor
	LossFloor       = 0.002 // ratio | TestAQuietHostIsLeftInPeace
	ReorderingFloor = 0.005 // ratio | TestAQuietHostIsLeftInPeace
	// WordsAfter windows in a row must say another word than WordsBefore did. One window of another word takes
	// WordsDoubt from them.
	WordsBefore = 48 // windows | four hours
	WordsAfter  = 4  // windows | TestAQuietHostIsLeftInPeace
	WordsDoubt  = 12 // windows | an hour
	// HostNetworks that shift alike, and HostShare of all that can be judged, are a shift of the host.
	HostNetworks = 3   // networks | definition: the host, and no single path
	HostShare    = 0.6 // ratio | definition: most of the networks
)
