package predict

import (
	"math"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/link"
	"github.com/fullpipe-net/fullpipe/internal/model"
	"github.com/fullpipe-net/fullpipe/internal/testenv/must"
)

// onTheClock sends with a window in bytes over a path, packet by packet on the link's own clock, and returns the
// goodput in bit/s. The sender has whole segments in flight. The receiver acknowledges every second one, the last of a
// burst, and each one of a window of at most two. ok is false after a loss.
func onTheClock(path link.Path, window, mss, headers int) (bps float64, ok bool) {
	const warm = 4 // rounds until it is steady
	up, down := path.Lanes()
	mss = min(mss, max(window/2, 1))
	each := window / mss
	rounds := max(12, 400/each)
	var now, first, last int64
	sent, una, got, unacked, id := 0, 0, 0, 0, int32(0)
	pushed := map[int32]bool{}
	acks := map[int32]int{}
	offer := func(lane *link.Lane, bytes int) bool {
		id++
		kept, _ := lane.Offer(now, link.Batch{ID: id, Segments: 1, Bytes: bytes, Last: bytes, Flow: 1})
		return kept == 1
	}
	send := func() bool {
		for (sent-una+1)*mss <= window {
			sent++
			if !offer(up, mss+headers) {
				return false
			}
			pushed[id] = (sent-una+1)*mss > window
		}
		return true
	}
	if !send() {
		return 0, false
	}
	for got < (warm+rounds)*each {
		now = min(up.Next(), down.Next())
		if now == link.Never {
			return 0, false
		}
		for run, some := up.Pop(now); some; run, some = up.Pop(now) {
			if run.Lost {
				return 0, false
			}
			got++
			unacked++
			switch got {
			case warm * each:
				first = now
			case (warm + rounds) * each:
				last = now
			}
			if unacked == 2 || window <= 2*mss || pushed[run.ID] {
				unacked = 0
				if !offer(down, headers) {
					return 0, false
				}
				acks[id] = got
			}
		}
		for run, some := down.Pop(now); some; run, some = down.Pop(now) {
			una = max(una, acks[run.ID])
			if !send() {
				return 0, false
			}
		}
	}
	return float64(rounds*each*mss*8) / time.Duration(last-first).Seconds(), true
}

// TestService_LinkClock compares the arithmetic of windows, which plan, predict and tune share, with the link's own
// clock: every profile without randomness, from one segment to a full path, with whole segments, half segments and
// windows that end in a part.
func TestService_LinkClock(t *testing.T) {
	paths := []string{"rate=10mbit,rtt=200us", "rate=2mbit,rtt=25ms,up.overhead=38",
		"rate=300kbit,rtt=10ms,duplex=half,overhead=26",
		"rate=1gbit,rtt=3ms,queue=1000packets", "rate=8mbit,up.rate=1mbit,rtt=35ms", "rate=50mbit,rtt=500us,duplex=half"}
	for _, p := range link.Profiles() {
		paths = append(paths, p.Name)
	}
	all := 0
	for _, text := range paths {
		path := must.Get(link.Parse(text))(t)
		chance := path.Up.Jitter > 0 || path.Up.Loss > 0 || path.Down.Loss > 0 || path.Up.PoliceRate > 0 ||
			path.Up.Aggregate > 0
		if chance || path.VPN.Kind != "" {
			continue
		}
		mss, headers := 1460, model.IPHeaders
		if sysctl(path.Near, "ipv4.tcp_timestamps") == "1" && sysctl(path.Far, "ipv4.tcp_timestamps") == "1" {
			mss, headers = mss-model.TimestampBytes, headers+model.TimestampBytes
		}
		rate := path.Up.Rate
		if path.Up.FlowRate > 0 {
			rate = min(rate, path.Up.FlowRate)
		}
		line := model.NewService(path.RTT, float64(rate), float64(path.Down.Rate), mss, headers, path.Up.Overhead)
		line.HalfDuplex = path.HalfDuplex
		for _, window := range []int{mss, 2200, 2 * mss, 2*mss + 700, 3 * mss, 4 * mss, 5 * mss, 6*mss + 1, 8 * mss, 12 * mss,
			17520, 24 * mss,
			44 * mss, 65535, 104 * mss, 344 * mss} {
			got, whole := onTheClock(path, window, mss, headers)
			if !whole { // the queue had no room for so much
				continue
			}
			all++
			if goodput := line.Goodput(window, mss); math.Abs(goodput/got-1) > 0.05 {
				t.Errorf("%s, window %d: %.4g bit/s by arithmetic, %.4g on the clock", text, window, goodput, got)
			}
			stack := path
			stack.Near.SenderRule, stack.Near.Window, stack.Far.Window = "", 0, 0
			a := must.Get(Transfer(stack, Setup{Window: window}))(t)
			work := time.Duration(hosts * float64(time.Second)) // the hosts' own
			stack.Up.Delay, stack.Down.Delay = stack.Up.Delay+work/2, stack.Down.Delay+work/2
			if got, _ := onTheClock(stack, window, mss, headers); math.Abs(a.Typical/got-1) > 0.1 {
				t.Errorf("%s, window %d: predicted %.4g bit/s, %.4g on the clock", text, window, a.Typical, got)
			}
		}
	}
	if all < 150 {
		t.Errorf("only %d windows were tried", all)
	}
}
