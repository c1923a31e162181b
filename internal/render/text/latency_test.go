package text_test

import (
	"strings"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/render/text"
	"github.com/fullpipe-net/fullpipe/internal/report"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/units"
)

func TestLatencyWords(t *testing.T) {
	ms := func(values ...int) (all []time.Duration) {
		for _, v := range values {
			all = append(all, time.Duration(v)*time.Millisecond)
		}
		return all
	}
	goodput := 80e6
	for name, c := range map[string]struct {
		l           *transfer.Latency
		ownMin, own float64 // s; the connection's
		bloat       record.Bloat
		says        []string
	}{
		"not asked for":      {nil, 0, 0, "", nil},
		"nothing under load": {&transfer.Latency{Method: "echo", Idle: ms(20)}, 0, 0, "", []string{"20 ms idle; too few"}},
		"a short queue": {&transfer.Latency{Method: "echo", Idle: ms(20, 21, 22), Loaded: ms(30, 40, 31)}, .02, .03,
			record.NoBloat,
			[]string{"21 ms idle, 31 ms under load, 40 ms at 95 % (3 probes by echo)",
				"the load adds 10 ms: no problem for calls and games"}},
		"a queue": {&transfer.Latency{Method: "ICMP", Idle: ms(20), Loaded: ms(80), Lost: 2}, .02, .08, record.SomeBloat,
			[]string{"(2 of 3 probes by ICMP were lost)", "some bufferbloat: the load adds 60 ms", "586 KiB"}},
		"a long queue": {&transfer.Latency{Method: "echo", Idle: ms(20), Loaded: ms(500)}, .02, .5, record.MuchBloat,
			[]string{"bufferbloat: the load adds 480 ms", "4.58 MiB"}},
		"queues by flow": {&transfer.Latency{Method: "echo", Idle: ms(20), Loaded: ms(21)}, .02, .5, record.NoBloat,
			[]string{"flows are kept apart"}},
		"one queue that some packets met": {&transfer.Latency{Method: "echo", Idle: ms(20), Loaded: ms(20, 21, 22, 400)},
			.02, .5, record.NoBloat, []string{"the load adds 2 ms in the median, and 380 ms or more for 1 packet in 20"}},
		"never got faster": {&transfer.Latency{Method: "echo", Idle: ms(50), Loaded: ms(40)}, .04, .04, record.NoBloat,
			[]string{"the load adds less than 1 ms"}},
	} {
		d := record.Direction{GoodputBps: &goodput, RTTMin: units.Duration(units.Seconds(c.ownMin)),
			RTTLoaded: units.Duration(units.Seconds(c.own))}
		l := report.Latency(c.l, &d)
		d.Latency = l
		var out strings.Builder
		text.Measure(&out, &record.Measure{Directions: []record.Direction{d}})
		if l != nil && l.Bloat != c.bloat {
			t.Errorf("%s: %q, want %q", name, l.Bloat, c.bloat)
		}
		unwrapped := strings.Join(strings.Fields(out.String()), " ")
		for _, part := range c.says {
			if !strings.Contains(unwrapped, part) {
				t.Errorf("%s: %q is not in %q", name, part, unwrapped)
			}
		}
		if c.says == nil && strings.Contains(unwrapped, "small packets") {
			t.Errorf("%s: %q", name, unwrapped)
		}
	}
}
