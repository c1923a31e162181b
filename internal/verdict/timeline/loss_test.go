package timeline

import (
	"slices"
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// sawtooth returns a congestion window that goes from a to b in n slices.
func sawtooth(a, b float64, steps int, scatter float64) (all []float64) {
	for i := range steps {
		all = append(all, a+(b-a)*float64(i)/float64(steps)+scatter*float64(i*7%5-2))
	}
	return all
}

func TestRecoveries(t *testing.T) {
	tests := []struct {
		name    string
		window  []float64 // segments
		losses  []int
		quiet   int // a slice in which the window does not grow back
		growing int
	}{
		{"from loss to loss in 75 slices", sawtooth(385, 445, 75, 0), []int{0, 74}, -1, 60},
		{"the same with scatter, away from the sender", sawtooth(385, 445, 75, 4), []int{0, 74}, -1, 60},
		{"still growing at the end", sawtooth(385, 445, 75, 0), []int{0}, -1, 70},
		{"a plateau after one loss", sawtooth(60, 60, 90, 0), []int{0}, 40, 5},
		{"growth up to a limit of the sender's", slices.Concat(sawtooth(60, 100, 20, 0), sawtooth(100, 100, 100, 0)),
			[]int{0}, 80, 15},
		{"up and down, as a program writes", sawtooth(60, 61, 90, 10), []int{0, 89}, 60, 5},
		{"no loss", sawtooth(60, 100, 90, 0), nil, 50, -1},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			lost := make([]bool, len(test.window))
			for _, i := range test.losses {
				lost[i] = true
			}
			found := recoveries(test.window, lost)
			if test.quiet >= 0 && found[test.quiet] {
				t.Errorf("slice %d seems to grow back", test.quiet)
			}
			if test.growing >= 0 && !found[test.growing] {
				t.Errorf("slice %d does not seem to grow back", test.growing)
			}
		})
	}
}

func TestOpening(t *testing.T) {
	tests := []struct {
		name   string
		window []float64
		rates  []float64 // nil: in proportion
		until  int       // a slice in which it still opens; 0: none does
	}{
		{"slow start ended early, then a few segments a round trip", sawtooth(60, 600, 60, 0), nil, 50},
		{"and then a plateau", slices.Concat(sawtooth(60, 600, 60, 0), sawtooth(600, 600, 20, 0)), nil, 50},
		{"a program that writes more and more, in waves", slices.Concat(sawtooth(60, 300, 20, 0), sawtooth(150, 400, 20, 0),
			sawtooth(250, 600, 20, 0)), nil, 0},
		{"a window that only fills a queue", sawtooth(60, 600, 60, 0), sawtooth(60, 70, 60, 0), 0},
		{"slow start and a plateau", slices.Concat(sawtooth(10, 600, 10, 0), sawtooth(600, 600, 50, 0)), nil, 0},
		{"the same with scatter", slices.Concat(sawtooth(10, 600, 10, 0), sawtooth(600, 610, 50, 40)), nil, 0},
	}
	for _, test := range tests {
		if test.rates == nil {
			test.rates = test.window
		}
		if until := opening(test.window, test.rates); until < test.until || test.until == 0 && until > 0 {
			t.Errorf("%s: opens until slice %d, want %d", test.name, until, test.until)
		}
	}
}

// superSegments writes rounds of one segment of the MSS and one of size bytes. The second is lost, unless one passes
// in the middle, and repeated piece by piece after a timeout. small is the number of segments of the MSS that are lost.
func superSegments(size, rounds int, onePasses bool, small int) func(x *tape) {
	return func(x *tape) {
		const rtt = 20 * ms
		at := 40 * ms
		pos := 0
		for round := range rounds {
			x.data(at, pos, 1460, 0)
			if round < small {
				at += 250 * ms
				x.data(at, pos, 1460, 0)
			}
			x.ack(at+rtt, pos+1460, 64<<10)
			pos += 1460
			x.data(at+ms, pos, size, 0)
			if onePasses && round == rounds/2 {
				at += rtt + ms
				x.ack(at, pos+size, 64<<10)
				pos += size
				continue
			}
			at += 250 * ms
			for begin := 0; begin < size; begin += 1460 {
				piece := min(1460, size-begin)
				x.data(at, pos+begin, piece, 0)
				at += rtt
				x.ack(at, pos+begin+piece, 64<<10)
			}
			pos += size
		}
	}
}

func TestJudge_OversizedSegments(t *testing.T) {
	tests := []struct {
		name  string
		write func(x *tape)
		want  string
	}{
		{"two segments in one", superSegments(2920, 30, false, 0), verdict.Oversized},
		{"a little longer than the MSS", superSegments(1488, 40, false, 0), verdict.Oversized},
		{"64 KB in one", superSegments(64240, 12, false, 0), verdict.Oversized},
		{"one gets through", superSegments(2920, 30, true, 0), ""},
		{"one outage loses all of them", superSegments(64240, 1, false, 0), ""},
		{"two outages", superSegments(29200, 2, false, 0), ""},
		{"segments of the MSS are lost too", superSegments(2920, 30, false, 15), ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			x := newTape(20*ms, 0)
			test.write(x)
			g, _ := x.judge(t)
			if g.Subtype != test.want || (g.Limiter == verdict.MTUBlackHole) != (test.want != "") {
				t.Errorf("%s (%s): %v", g.Limiter, g.Subtype, g.Shares)
			}
		})
	}
}

// A congestion window that doubles from ten segments after each idle time.
func TestJudge_IdleRestart(t *testing.T) {
	for _, test := range []struct {
		name     string
		messages int
		largest  int // congestion window, segments
		last     int // segment of a message, bytes
		idle     int64
		restarts float64
	}{
		{"one transfer", 1, 160, 1460, 0, 0},
		{"idle times between messages", 8, 160, 1460, 250 * ms, 7},
		{"messages that end in a short segment", 8, 160, 700, 250 * ms, 7},
		{"messages without idle times", 2, 160, 1460, 30 * ms, 0},
		{"idle times shorter than a round trip", 8, 160, 1460, 150 * ms, 0},
		{"messages of the initial window", 8, 10, 1460, 250 * ms, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			const rtt = 200 * ms
			x := newTape(rtt, 0)
			at := 2 * rtt
			pos := 0
			for range test.messages {
				for cwnd := 10; cwnd <= test.largest; cwnd *= 2 {
					for i := range cwnd {
						length := 1460
						if i == test.largest-1 {
							length = test.last
						}
						x.data(at+int64(i)*ms/10, pos, length, 0)
						pos += length
						x.ack(at+int64(i)*ms/10+rtt, pos, 4<<20)
					}
					at += rtt + ms
				}
				at += test.idle
			}
			g, _ := x.judge(t)
			if (g.Subtype == verdict.IdleRestart) != (test.restarts > 0) || test.restarts > 0 && g.Limiter != verdict.SlowStart {
				t.Errorf("%s (%s), %s: %v", g.Limiter, g.Subtype, g.Confidence, g.Shares)
			}
			e := evidenceOf(&g, verdict.CapturedIdleRestart)
			idle := e["restarts"] * float64(test.idle) / 1e9
			if e["restarts"] != test.restarts || e["idle_s"] > idle || e["idle_s"] < 0.9*idle {
				t.Errorf("%v, want %.0f restarts", e, test.restarts)
			}
		})
	}
}
