package turns

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"testing"
)

// cell is one kind of wait on one path.
type cell struct {
	kind   string
	rtt    int64
	bps    float64
	answer int64
	tap    float64
	seed   uint64
}

func (c cell) String() string {
	return fmt.Sprintf("%s %v ms %v Mbit/s answer %d tap %v", c.kind, c.rtt/ms, c.bps/1e6, c.answer, c.tap)
}

// expected are the causes that explain a kind.
var expected = map[string][]Cause{
	"none":            nil,
	"lost-first":      {FastRetransmit, TailLossProbe, Timeout},
	"lost-middle":     {FastRetransmit, TailLossProbe, Timeout},
	"lost-last":       {TailLossProbe, Timeout},
	"lost-request":    {TailLossProbe, Timeout},
	"lost-syn":        {LostSYN},
	"delayed-ack":     {DelayedAck},
	"nagle":           {Nagle, DelayedAck}, // an odd segment is acknowledged late
	"slow-server":     {Server},
	"slow-reader":     {ZeroWindow, ReceiveWindow},
	"own-queue":       {Wire},
	"other-queue":     {Queue},
	"slow-start-idle": {Rounds},
	"zero-window":     {ZeroWindow, WindowProbe},
}

const simTurns = 25

// play runs a cell and returns the packets at the tap, the truth, and the turns that the kind disturbed.
func (c cell) play() (w *world, hit map[int]bool) {
	hit = map[int]bool{}
	p := path{rtt: c.rtt, bps: c.bps, lost: 0.25, line: 0.6}
	if c.seed%2 == 1 {
		p.lost = 0.75
	}
	w = newWorld(p, c.tap, c.seed)
	thinkTime := 2 * ms
	segments := (c.answer + simMSS - 1) / simMSS
	every := func(turn int) bool { return turn%5 == 3 }
	lose := func(want int64, client bool) func(*world, bool, *sent) bool {
		return func(w *world, fromClient bool, s *sent) bool {
			if fromClient != client || s.syn || s.again > 0 || !every(s.turn) || int64(s.n) != want {
				return false
			}
			hit[s.turn] = true
			return true
		}
	}
	slow := func(turn int) bool { return false }
	switch c.kind {
	case "lost-first":
		w.loss = lose(0, false)
	case "lost-middle":
		w.loss = lose(segments/2, false)
	case "lost-last":
		w.loss = lose(segments-1, false)
	case "lost-request":
		w.loss = lose(0, true)
	case "lost-syn":
		w.loss = func(w *world, fromClient bool, s *sent) bool { return s.syn && s.again == 0 && fromClient }
		hit[0] = true
	case "slow-server":
		slow = every
	case "delayed-ack", "nagle":
		w.server.nagle = true
	case "other-queue":
		w.queue = func(fromClient bool, now int64) int64 {
			if now/(700*ms)%2 == 1 && !fromClient {
				return c.rtt + 20*ms
			}
			return 0
		}
	case "zero-window", "slow-reader":
		w.client.buffer = max(c.answer/4, 4*simMSS)
		w.client.reads = false
	}
	turn := -1
	var request func()
	pause := func(turn int) int64 {
		if c.kind == "slow-start-idle" {
			return 3000 * ms
		}
		return 50*ms + int64(w.rand.IntN(20))*ms
	}
	var started, answered int64
	request = func() {
		turn++
		if turn >= simTurns {
			return
		}
		w.client.turn = turn
		w.client.inTurn = 0
		w.truth = append(w.truth, truth{start: w.now})
		w.truth[0].start = 0 // the first turn begins with the SYN
		started = w.server.expect
		w.client.write(300)
	}
	w.server.onData = func() {
		if w.server.expect != started+300 || answered == w.server.expect {
			return
		}
		answered = w.server.expect
		think := thinkTime
		if slow(turn) {
			think = 3*c.rtt + 150*ms
			hit[turn] = true
		}
		w.truth[turn].thought = think
		w.after(think, func() {
			w.server.turn = turn
			w.server.inTurn = 0
			if w.server.nagle && every(turn) {
				hit[turn] = true
				w.server.write(100)
				w.server.write(c.answer - 100)
				return
			}
			w.server.write(c.answer)
		})
	}
	var have int64
	w.client.onData = func() {
		if w.client.expect-have < c.answer {
			return
		}
		have = w.client.expect
		w.truth[turn].end = w.now
		w.after(pause(turn), request)
	}
	if !w.client.reads {
		var read func()
		read = func() {
			n := min(w.client.unread, w.client.buffer/2)
			w.client.unread -= n
			if n > 0 && w.client.window() >= 2*simMSS {
				w.client.ack()
			}
			w.after(c.rtt+60*ms, read)
		}
		read()
	}
	w.connect(request)
	w.run(600_000 * ms)
	return w, hit
}

// track gives the tap's packets to a Tracker.
func (w *world) track() *Tracker {
	t := &Tracker{}
	for i := range w.packets {
		t.Add(&w.packets[i])
	}
	t.Finish()
	return t
}

func (c cell) isValid() bool {
	segments := (c.answer + simMSS - 1) / simMSS
	switch c.kind {
	case "lost-first", "lost-middle":
		return segments >= 3
	case "lost-request":
		if c.rtt >= 200*ms && segments >= 30 {
			return false // as slow-server
		}
		return c.tap < 0.2 || c.tap < 0.9 && c.seed%2 == 1 // elsewhere no packet shows it
	case "lost-syn":
		return c.tap < 0.2
	case "delayed-ack":
		return segments == 1
	case "nagle":
		// In all turns the server writes less than a segment last; without a pause between two writes it is sent at once.
		return segments > 1 && segments < 10
	case "slow-reader", "zero-window":
		return segments >= 30 && c.bps > 1e6
	case "own-queue":
		return segments >= 6 && float64(c.answer*8)/c.bps*1e9 > float64(c.rtt)
	case "slow-server":
		return c.rtt < 200*ms || segments < 30 // a long pause makes the congestion window small again
	case "slow-start-idle":
		return c.rtt >= 6*ms && segments >= 30 && float64(segments*simMSS*8)/c.bps*1e9 < float64(2*c.rtt)
	case "other-queue":
		return c.tap < 0.2 && segments == 1 && c.bps > 1e6
	}
	return true
}

func cells() (all []cell) {
	seed := uint64(1)
	for _, kind := range slices.Sorted(maps.Keys(expected)) {
		for _, rtt := range []int64{1, 6, 40, 200} {
			for _, bps := range []float64{1e6, 20e6, 1e9} {
				for _, answer := range []int64{400, 9000, 100_000, 300_000} {
					for _, tap := range []float64{0, 0.5, 1} {
						seed++
						c := cell{kind, rtt * ms, bps, answer, tap, seed}
						if c.isValid() && float64(answer*8)/bps < 4 {
							all = append(all, c)
						}
					}
				}
			}
		}
	}
	return all
}

// extra returns the causes that took longer in the disturbed turns than in the others, or all where all are alike, and
// the same of the truth.
func extra(w *world, got *Tracker, hit map[int]bool) (causes [Causes]float64, truth float64) {
	var n [2]float64
	for i := range got.kept {
		n[sideIndex(hit[i])]++
	}
	for i, one := range got.kept {
		weight := 1 / n[1]
		switch {
		case len(hit) == 0:
			weight = 1 / n[0]
		case !hit[i]:
			weight = -1 / n[0]
		}
		if i == 0 && !hit[i] {
			one.time[Connect] = [Causes]float32{}
		}
		for s := range one.time {
			for c, d := range one.time[s] {
				causes[c] += weight * float64(d)
			}
		}
		truth += weight * float64(w.truth[i].end-w.truth[i].start)
	}
	return causes, truth
}

// TestTracker_Cells plays each kind of wait on each path, seen from each tap, and compares durations and causes with
// the truth. A kind that costs less than 5 ms or a tenth of a turn is not judged.
func TestTracker_Cells(t *testing.T) {
	var right, open, judged, played int
	for _, c := range cells() {
		w, hit := c.play()
		got := w.track()
		played++
		compareDurations(t, c, w, got)
		want := expected[c.kind]
		causes, truth := extra(w, got, hit)
		if want == nil || truth < 5e6 || len(hit) > 0 && truth < 0.1*float64(w.truth[3].end-w.truth[3].start) {
			continue
		}
		judged++
		worst := Unknown
		var time float64
		for c, d := range causes {
			if Cause(c) != Propagation && d > time {
				worst = Cause(c)
				time = d
			}
		}
		switch {
		case slices.Contains(want, worst):
			right++
		case worst == Unknown:
			open++
		default:
			t.Logf("wrong: %v: %v of %.1f ms: %.0f", c, worst, truth/1e6, causes)
		}
	}
	t.Logf("%d cells played, %d judged: %d right, %d open", played, judged, right, open)
	wrong := judged - right - open
	if judged < 150 || right*100 < judged*95 || wrong*450 > 3*judged {
		t.Errorf("%d of %d right, %d open, %d wrong", right, judged, open, wrong)
	}
}

// compareDurations checks that a turn's causes and stages add up to the duration that the client's program saw.
func compareDurations(t *testing.T, c cell, w *world, got *Tracker) {
	t.Helper()
	complete := 0
	for _, one := range w.truth {
		if one.end > 0 {
			complete++
		}
	}
	if int(got.Count) != complete || complete < simTurns {
		t.Errorf("%v: %d turns, want %d", c, got.Count, complete)
		return
	}
	off := 0
	for i, one := range got.kept {
		var sum float64
		for s := range one.time {
			for _, d := range one.time[s] {
				sum += float64(d)
			}
		}
		if math.Abs(sum-float64(one.duration)) > 1e-6*sum {
			t.Errorf("%v: turn %d: stages add up to %.0f ns, it took %d", c, i, sum, one.duration)
		}
		want := float64(w.truth[i].end - w.truth[i].start)
		oneSegment := 1500 * 8 / c.bps * 1e9 // before the tap or beyond it, no packet shows its time on the line
		if math.Abs(float64(one.duration)-want) > max(want*0.05, oneSegment, 2e6) {
			off++
		}
	}
	if off*4 > complete {
		t.Errorf("%v: %d of %d durations differ from the client's", c, off, complete)
	}
}
