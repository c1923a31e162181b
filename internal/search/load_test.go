package search

import (
	"fmt"
	"math"
	"testing"
	"time"
)

// TestLoadFindsTheCapacity lets the algorithm send over links with a queue, in steps of
// its own feedback: the best second is what the link carries.
func TestLoadFindsTheCapacity(t *testing.T) {
	const datagram = 1476 * 8.0 // bits
	for _, link := range []float64{64e3, 256e3, 1e6, 2e6, 6.5e6, 20e6, 100e6, 900e6, 3e9} {
		for _, queue := range []time.Duration{10 * time.Millisecond, 200 * time.Millisecond} {
			t.Run(fmt.Sprintf("%.3g Mbit per s, %v", link/1e6, queue), func(t *testing.T) {
				var l Load
				var reports []Feedback // a round trip's feedback is in flight
				room := max(link*queue.Seconds(), 10*datagram)
				var queued, owed, best, second float64
				step := FeedbackEvery.Seconds()
				for i := range 10 * 20 {
					arriving := l.Bps() * step
					delivered := min(queued+arriving, link*step)
					queued += arriving - delivered
					lost := max(queued-room, 0)
					queued -= lost
					owed += lost / datagram
					errors := int64(owed)
					owed -= float64(errors)
					if reports = append(reports, Feedback{SequenceErrors: errors,
						Delay: time.Duration(queued / link * float64(time.Second))}); len(reports) > 1 {
						l.Observe(reports[0])
						reports = reports[1:]
					}
					if second += delivered; i%20 == 19 {
						best, second = max(best, second), 0
					}
				}
				if best < 0.97*link || best > 1.001*link {
					t.Errorf("%.4g Mbit/s of %.4g", best/1e6, link/1e6)
				}
				if !l.Congested {
					t.Error("no congestion was seen")
				}
			})
		}
	}
}

func TestLoadRows(t *testing.T) {
	for row, want := range map[int]float64{firstRow: 15.42e3, 0: 0.5e6, 1: 0.52475e6, firstTen: 10e6, firstTen + 1: 11e6,
		firstGiga: 1e9, firstGiga + 1: 1.1e9, lastRow: 10e9} {
		if got := rowBps(row); math.Abs(got/want-1) > 1e-3 {
			t.Errorf("row %d: %v, want %v", row, got, want)
		}
	}
	var l Load
	for range 2000 {
		l.Observe(Feedback{})
	}
	if l.Bps() != 10e9 || l.Congested {
		t.Errorf("%v after much good news", l.Bps())
	}
	l.Silent()
	if l.Bps() != rowBps(firstRow) {
		t.Errorf("%v after silence", l.Bps())
	}
}
