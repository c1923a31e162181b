//go:build linux

package bench

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/e2e/harness"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// dataFrom returns the index in a series at which data begins: control connections have small segments.
func dataFrom(series []harness.LinkSample) int {
	before := harness.LinkSample{}
	for i, c := range series {
		if c.Payload-before.Payload > 600*(c.Packets-before.Packets) {
			return i
		}
		before = c
	}
	return len(series)
}

// within returns the payload carried in a span from the ith entry on.
func within(series []harness.LinkSample, i int, d time.Duration) float64 {
	end := series[i].At + d
	for j := i + 1; j < len(series); j++ {
		a, b := series[j-1], series[j]
		if b.At >= end {
			part := float64(end-a.At) / float64(b.At-a.At)
			return float64(a.Payload-series[i].Payload) + part*float64(b.Payload-a.Payload)
		}
	}
	return float64(series[len(series)-1].Payload - series[i].Payload)
}

// TestBankGoodput compares measure's goodput with the payload, less retransmissions, that the link's counters carried
// in an equally long span from the first data on. It takes about eight minutes.
func TestBankGoodput(t *testing.T) {
	bankOnly(t)
	for _, c := range []struct {
		path, time string
		slow       bool // may be measured while other tests run
	}{
		{"rate=64kbit,rtt=30ms,queue=20kB", "60s", true}, {"rate=1mbit,rtt=30ms", "10s", true}, {"rate=10mbit,rtt=20ms", "5s",
			true},
		{"rate=100mbit,rtt=20ms", "5s", false}, {"rate=1gbit,rtt=10ms", "4s", false},
	} {
		for _, kind := range []string{"native", "iperf3"} {
			for _, d := range []transfer.Direction{transfer.Up, transfer.Down} {
				t.Run(fmt.Sprintf("%s %s %s", c.path, kind, d), func(t *testing.T) {
					one := alone
					if c.slow {
						t.Parallel()
						one = func(_ *testing.T, measure func()) { measure() }
					}
					var off, rates []float64
					for range 3 {
						one(t, func() {
							m, series := harness.MeasureInLab(t, c.path, kind, d, "-t", c.time)
							i := dataFrom(series)
							if i == len(series) {
								t.Fatal("the link carried no data")
							}
							payload := within(series, i, time.Duration(m.Duration*float64(time.Second))) - float64(m.SpuriousBytes)
							rates = append(rates, 8*payload/m.Duration/1e6)
							off = append(off, 100*(m.GoodputBps*m.Duration/8/payload-1))
						})
					}
					slices.Sort(off)
					slices.Sort(rates)
					row := bankRow{Section: "Goodput against the link's counters", Case: fmt.Sprintf("%s, %s, %s", c.path, kind, d),
						Claim:    "goodput within 1 % of the payload that the link carried",
						Measured: fmt.Sprintf("%+.2f %% of %.4g Mbit/s (median of 3)", off[1], rates[1]),
						Spread:   fmt.Sprintf("%+.2f to %+.2f %%", off[0], off[2]),
						Verdict:  "inconclusive", Command: fmt.Sprintf("fullpipe measure PEER -t %s --json in a lab", c.time)}
					switch least, most := off[0], off[2]; {
					case least >= -1 && most <= 1:
						row.Verdict = "pass"
					case most < -1 || least > 1:
						row.Verdict = "fail"
					}
					record(t, row)
				})
			}
		}
	}
}
