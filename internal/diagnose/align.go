package diagnose

import (
	"cmp"
	"math"
	"slices"

	"github.com/fullpipe-net/fullpipe/internal/flow"
	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/stats"
	"github.com/fullpipe-net/fullpipe/internal/verdict/threshold"
)

// alignment is the relation of the clocks of two taps of one connection, with the times that segments took between
// them each way. Times are nanoseconds.
type alignment struct {
	nearIsClient bool // the near tap is the one on the client's side
	// offset is how far the far tap's clock was ahead when the connection began, if the two
	// ways are equally long when empty: wrong by at most half of least. drift is by what
	// share of the time it runs faster.
	offset, drift float64
	least         float64 // the round trip between the taps when nothing waits
	client        way     // segments that the client sends; server: that it receives
	server        way
	matched       int
}

// way is one direction between the taps.
type way struct{ queueMean, queueMost float64 }

// passing is one segment at both taps: when, by the near one's clock from the connection's
// start, and how much later it was by the far one's.
type passing struct{ at, later float64 }

// Passes is how many segments of each end are kept of either capture (flow.Config).
const Passes = 2048

// moments is the number of parts of a connection in which the side of a tap is looked for.
const moments = 16

// align matches what two taps saw of a connection, by what both ends wrote into the
// segments, never by the taps' clocks. false: too little is in both captures.
//
// A segment toward the far tap is later there by its way's delay and the clocks' offset,
// one that comes from it by the offset less its delay. So the sum of both is a round trip
// whatever the clocks are, and drift is what the shortest delays do of the way that queues
// less: mostly the acknowledgements'.
func align(near *flow.Connection, far *twin) (a alignment, ok bool) {
	return alignPasses(tapped{near.Passes(true), near.Passes(false)}, far.passes(), near.Started)
}

// tapped are the segments of either end that a tap kept.
type tapped struct{ client, server []flow.Pass }

func alignPasses(near, far tapped, began int64) (a alignment, ok bool) {
	c := passings(near.client, far.client, began)
	s := passings(near.server, far.server, began)
	if len(c) < int(threshold.AlignedSegments.Value) || len(s) < int(threshold.AlignedSegments.Value) {
		return a, false
	}
	a.matched = len(c) + len(s)
	end := max(c[len(c)-1].at, s[len(s)-1].at)
	from, found := sidedness(c, s, end)
	if !found {
		return a, false
	}
	a.nearIsClient = from > 0
	// From here on the client's segments are later by delay + offset, the server's by
	// delay - offset, where offset is the server-side tap's clock less the client-side's.
	for i := range c {
		c[i].later *= from
	}
	for i := range s {
		s[i].later *= -from
	}
	drift := driftOf(under(c), under(s))
	for i := range c {
		c[i].later -= drift * c[i].at
	}
	for i := range s {
		s[i].later += drift * s[i].at
	}
	there := shortest(c)
	back := shortest(s)
	a.least = there + back
	a.offset = from * (there - back) / 2
	a.drift = from * drift
	a.client = queueOf(c, there)
	a.server = queueOf(s, back)
	return a, a.least >= 0
}

// driftOf chooses between what either way's shortest delays say: of the way whose others lie
// less above them. More than clocks can differ by is a queue that grows.
func driftOf(client, server line) float64 {
	drifts := []float64{client.slope, -server.slope}
	if server.above < client.above {
		slices.Reverse(drifts)
	}
	for _, drift := range drifts {
		if math.Abs(drift) <= threshold.ClockDrift.Value {
			return drift
		}
	}
	return 0
}

// passings pairs the segments that both taps saw, in the order of the near one: by their
// timestamps too where both can read the same, else by their numbers alone.
func passings(near, far []flow.Pass, began int64) (all []passing) {
	all = paired(near, far, began, func(n flow.Name) flow.Name { return n })
	if len(all) < int(threshold.AlignedSegments.Value) {
		all = paired(near, far, began, flow.Name.Unstamped)
	}
	slices.SortStableFunc(all, func(x, y passing) int { return cmp.Compare(x.at, y.at) })
	return all
}

func paired(near, far []flow.Pass, began int64, name func(flow.Name) flow.Name) (all []passing) {
	here := passed(near, name)
	there := passed(far, name)
	for _, p := range near {
		n := name(p.Name)
		if later, both := there[n]; both && later != ambiguous && here[n] == p.At {
			delete(there, n)
			all = append(all, passing{float64(p.At - began), float64(later - p.At)})
		}
	}
	return all
}

const ambiguous = math.MinInt64

// passed is when a tap saw each segment. Of a name that came twice the first pass counts;
// without a timestamp in it neither does, since the other tap may have seen either one.
func passed(all []flow.Pass, name func(flow.Name) flow.Name) map[flow.Name]int64 {
	at := make(map[flow.Name]int64, len(all))
	for _, p := range all {
		n := name(p.Name)
		if _, twice := at[n]; !twice {
			at[n] = p.At
		} else if !n.Stamped() {
			at[n] = ambiguous
		}
	}
	return at
}

// sidedness returns 1 where the near tap is on the client's side, -1 on the server's. Segments to the far tap are
// there later than segments from it, by the round trip between the taps. It is not found where most moments do not
// agree.
func sidedness(c, s []passing, end float64) (from float64, found bool) {
	var trips []float64
	cw := windows(c, end)
	sw := windows(s, end)
	for i := range cw {
		if len(cw[i]) > 0 && len(sw[i]) > 0 {
			trips = append(trips, stats.Median(cw[i])-stats.Median(sw[i]))
		}
	}
	if len(trips) == 0 {
		return 0, false
	}
	trip := stats.Median(trips)
	return math.Copysign(1, trip), trip != 0
}

// windows are how much later the segments of each part of the time were.
func windows(all []passing, end float64) (out [moments][]float64) {
	for _, p := range all {
		i := min(int(p.at/max(end, 1)*moments), moments-1)
		out[max(i, 0)] = append(out[max(i, 0)], p.later)
	}
	return out
}

// line runs under delays; above is by how much the mean delay exceeds it.
type line struct{ slope, above float64 }

// under is how the shortest delays grow with time: of the lines that no delay lies below, the
// one that all of them together are closest to (Moon, Skelly, Towsley, INFOCOM 1999). It is
// the edge of their lower convex hull above their mean time.
func under(all []passing) line {
	var hull []passing
	var mean passing
	for _, p := range all {
		mean.at += p.at / float64(len(all))
		mean.later += p.later / float64(len(all))
		for n := len(hull); n > 0; n = len(hull) {
			last := hull[n-1]
			over := n > 1 && (last.later-hull[n-2].later)*(p.at-hull[n-2].at) >=
				(p.later-hull[n-2].later)*(last.at-hull[n-2].at)
			if !over && (last.at < p.at || last.later <= p.later) {
				break
			}
			hull = hull[:n-1]
		}
		if n := len(hull); n == 0 || hull[n-1].at < p.at {
			hull = append(hull, p)
		}
	}
	for i := 1; i < len(hull); i++ {
		from := hull[i-1]
		to := hull[i]
		if to.at >= mean.at || i == len(hull)-1 {
			slope := (to.later - from.later) / (to.at - from.at)
			return line{slope, mean.later - from.later - slope*(mean.at-from.at)}
		}
	}
	return line{}
}

func shortest(all []passing) float64 {
	least := math.Inf(1)
	for _, p := range all {
		least = min(least, p.later)
	}
	return least
}

func queueOf(all []passing, least float64) (w way) {
	queues := make([]float64, len(all))
	for i, p := range all {
		queues[i] = p.later - least
		w.queueMean += queues[i] / float64(len(all))
	}
	slices.Sort(queues)
	w.queueMost = queues[int(float64(len(queues)-1)*threshold.QueueMostly.Value)]
	return w
}

// ways returns the times of the data that one end sent.
func (a *alignment) ways(byClient bool) *record.CapturedWays {
	data := a.client
	acks := a.server
	if !byClient {
		data, acks = acks, data
	}
	const s = 1e9
	return &record.CapturedWays{Matched: a.matched, DataQueueS: data.queueMean / s, DataQueueMostS: data.queueMost / s,
		AckQueueS: acks.queueMean / s, AckQueueMostS: acks.queueMost / s, RTTMinS: a.least / s, ClockOffsetS: a.offset / s,
		ClockDrift: a.drift}
}
