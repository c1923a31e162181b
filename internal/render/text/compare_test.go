package text_test

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/render/text"
	"github.com/fullpipe-net/fullpipe/internal/report"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
	"github.com/fullpipe-net/fullpipe/internal/verdict/compare"
)

func sides() [2]compare.Side {
	full := verdict.Verdict{Limiter: verdict.Bottleneck, Confidence: verdict.High}
	busy := 0.125
	inside := compare.Side{Goodputs: []float64{28e6, 28.1e6, 27.9e6}, Verdicts: []verdict.Verdict{full, full, full},
		MSS: 1386, PathMTU: 1438,
		RTTMin: 12 * time.Millisecond, RTTMean: 40 * time.Millisecond, Sent: 10e6, Resent: 10e3, NearCPU: &busy}
	outside := inside
	outside.Goodputs, outside.MSS, outside.PathMTU, outside.RTTMean = []float64{94e6, 94.1e6, 94.2e6}, 1448, 1500, 0
	return [2]compare.Side{inside, outside}
}

func TestCompareText(t *testing.T) {
	c := record.Compare{Peers: [2]string{"10.8.0.1", "192.0.2.1"}, Rounds: 2}
	c.Directions = append(c.Directions, report.ComparedDirection(transfer.Up, c.Peers, sides()))
	var b strings.Builder
	text.Compare(&b, &c)
	const want = `inside   10.8.0.1
outside  192.0.2.1

UP (this host sends), 3 and 3 transfers in turn
                                        inside                     outside
  goodput                            28 Mbit/s                 94.1 Mbit/s
  95 % interval     27.7 Mbit/s to 28.3 Mbit/s  93.8 Mbit/s to 94.4 Mbit/s
  limited by                        bottleneck                  bottleneck
  segment                           1386 bytes                  1448 bytes
  path MTU                          1438 bytes                  1500 bytes
  least round trip                       12 ms                       12 ms
  mean round trip                        40 ms                   not known
  retransmitted                          0.1 %                       0.1 %
  near host busy                          12 %                        12 %
  far host busy                      not known                   not known

  outside over inside  × 3.36   (× 3.32 to × 3.40 with 95 % confidence, measured in turn)
  because of           capacity, high confidence
                       without it the slower one would give 3.18 to 3.39 times as much
    overhead           × 1.00 to × 1.04: segments of 1386 bytes instead of 1448
    capacity           × 3.18 to × 3.39: the way is full at 28 Mbit/s; the other one carries
                       94.1 Mbit/s
`
	if b.String() != want {
		t.Errorf("got\n%s\nwant\n%s", b.String(), want)
	}
}

// TestCompareWithoutMeasurements checks that values without a measurement, NaN and Inf are absent from the JSON.
func TestCompareWithoutMeasurements(t *testing.T) {
	both := sides()
	both[1] = compare.Side{}
	one := both
	one[0].Goodputs, one[1] = []float64{1e6}, compare.Side{Goodputs: []float64{2e6}}
	for _, s := range [][2]compare.Side{both, one} {
		d := report.ComparedDirection(transfer.Down, [2]string{"a", "b"}, s)
		out, err := json.Marshal(d)
		if err != nil {
			t.Fatal(err)
		}
		for _, absent := range []string{"slower", "null", `"ci95":`} {
			if strings.Contains(string(out), absent) {
				t.Errorf("%s is in %s", absent, out)
			}
		}
		if d.Cause != compare.UnknownCause || d.Factor != nil && math.IsNaN(d.Factor.Factor) {
			t.Errorf("%+v", d)
		}
		c := record.Compare{Directions: []record.ComparedDirection{d}}
		text.Compare(&strings.Builder{}, &c)
	}
}
