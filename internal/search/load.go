package search

import (
	"math"
	"time"
)

// Load is the rate of a sender that searches a path's capacity while it sends, by RFC
// 9097 section 8.1's algorithm (type B): it climbs fast until congestion has shown three
// times, then by single rows of a table of rates. The zero value begins at 0.5 Mbit/s.
type Load struct {
	row       int  // of the table of rates; 0 is the start
	slow      int  // times that congestion has shown
	Congested bool // congestion has shown
}

// Feedback is the receiver's report of the last FeedbackEvery.
type Feedback struct {
	SequenceErrors int64         // lost, reordered and duplicated datagrams
	Delay          time.Duration // above the least one, on average
}

// FeedbackEvery is the interval of the receiver's reports (RFC 9097 section 8.2).
const FeedbackEvery = 50 * time.Millisecond

const (
	sequenceErrors = 10
	fastRows       = 10
	backRows       = 3 * fastRows
	slowAfter      = 3
	// From 10 Mbit/s on the table of RFC 9097's appendix A: single megabits up to 1 Gbit/s,
	// then hundreds up to 10. Below that its steps are too long to hold a line near full (a
	// doubling from 0.5 to 1 Mbit/s): here 62 rows of a twentieth each lead there from 0.5, and
	// 72 below it to 15 kbit/s.
	firstRow    = -72
	firstTen    = 62 // 10 Mbit/s
	firstGiga   = firstTen + 990
	lastRow     = firstGiga + 90
	startBps    = 0.5e6
	tenMegabits = 10e6
)

// Bps is the rate to send at, at the IP layer in bit/s.
func (l *Load) Bps() float64 { return rowBps(l.row) }

func rowBps(row int) float64 {
	switch {
	case row < firstTen:
		return startBps * math.Pow(tenMegabits/startBps, float64(row)/firstTen)
	case row <= firstGiga:
		return tenMegabits + float64(row-firstTen)*1e6
	}
	return 1e9 + float64(row-firstGiga)*100e6
}

// Observe takes in one feedback.
func (l *Load) Observe(f Feedback) {
	fast := l.row >= 0 && l.row < firstGiga && l.slow < slowAfter
	switch {
	case f.SequenceErrors <= sequenceErrors && f.Delay < littleVariation:
		if fast {
			l.row += fastRows
			l.slow = 0
		} else {
			l.row++
		}
	case f.Congested():
		l.Congested = true
		l.slow++
		if l.slow == slowAfter && l.row > 0 && l.row < firstGiga {
			l.row = max(l.row-backRows, 0)
		} else {
			l.row--
		}
	}
	l.row = min(max(l.row, firstRow), lastRow)
}

// Congested says that the path cannot carry the rate.
func (f Feedback) Congested() bool {
	return f.SequenceErrors > sequenceErrors || f.Delay > muchVariation
}

// Silent is what a sender does that has not heard for long: it begins again.
func (l *Load) Silent() {
	l.row = firstRow
	l.Congested = true
}
