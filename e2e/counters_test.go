//go:build linux

package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/lab"
	"github.com/fullpipe-net/fullpipe/internal/link"
	"github.com/fullpipe-net/fullpipe/internal/probe"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// headers are what IPv4 and TCP with timestamps put before a segment's payload.
const headers = 20 + 32

// carried is how far a link's counters had come.
type carried struct {
	at      time.Duration
	packets int64
	payload int64 // bytes less headers; what ACKs alone carry is nothing
	dropped int64 // packets, before the line
}

// counted is a transfer as `measure --json` tells it.
type counted struct {
	GoodputBps    float64 `json:"goodput_bps"`
	Duration      float64 `json:"duration_s"`
	Bytes         int64
	Retransmitted int64 `json:"retransmitted_segments"`
	twice         int64 // payload that the link carried again, though it had not dropped it; 0 where nobody tells
}

// measureInLab runs measure against a native or an iperf3 server over a link, and
// answers what it tells and how the link's own counters went meanwhile.
func measureInLab(t *testing.T, path, kind string, d transfer.Direction, args ...string) (counted, []carried) {
	t.Helper()
	l, _ := bench(t, path)
	defer l.Close()
	program, err := fullpipe()
	if err != nil {
		t.Fatal(err)
	}
	key := "FULLPIPE_KEY=" + probe.NewKey().String()
	server, peer := []string{program, "serve", "--quiet"}, "fullpipe://"+lab.FarAddr.String()
	if kind == "iperf3" {
		server, peer = []string{needIperf3(t), "-s"}, "iperf3://"+lab.FarAddr.String()
	}
	far, err := l.Far.Start(lab.Command{Args: server, Env: []string{key}})
	if err != nil {
		t.Fatal(err)
	}
	l.Far.AwaitListener(t.Context(), far)
	var out, problems bytes.Buffer
	near, err := l.Near.Start(lab.Command{Args: append([]string{program, "measure", peer, "--json", "-d", string(d)},
		args...),
		Env: []string{key}, Stdout: &out, Stderr: &problems})
	if err != nil {
		t.Fatal(err)
	}
	series := follow(t, l, near, d)
	if status, err := near.Wait(); err != nil || status != 0 {
		t.Fatalf("measure: status %d, %v: %s%s", status, err, out.String(), problems.String())
	}
	var doc struct{ Directions []counted }
	if err := json.Unmarshal(out.Bytes(), &doc); err != nil || len(doc.Directions) != 1 {
		t.Fatalf("%v: %s", err, out.String())
	}
	m := doc.Directions[0]
	m.twice = 1448 * max(m.Retransmitted-series[len(series)-1].dropped, 0)
	return m, series
}

// follow reads the link's counters until a program ends and answers each change.
func follow(t *testing.T, l *lab.Lab, until *lab.Process, d transfer.Direction) (series []carried) {
	t.Helper()
	started := time.Now()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	var last link.Counters
	for running := true; running; {
		select {
		case <-tick.C:
		case <-until.Done():
			running = false
		}
		up, down, err := l.Counters()
		if err != nil {
			t.Fatal(err)
		}
		n := up
		if d == transfer.Down {
			n = down
		}
		if n.Delivered != last.Delivered {
			series = append(series, carried{time.Since(started), n.Delivered, n.DeliveredBytes - headers*n.Delivered,
				n.DroppedQueue})
		}
		last = n
	}
	return series
}

// dataFrom is where in a series data begins: control connections have small segments.
func dataFrom(series []carried) int {
	before := carried{}
	for i, c := range series {
		if c.payload-before.payload > 600*(c.packets-before.packets) {
			return i
		}
		before = c
	}
	return len(series)
}

// within is the payload carried in a time from the ith entry on.
func within(series []carried, i int, d time.Duration) float64 {
	end := series[i].at + d
	for j := i + 1; j < len(series); j++ {
		a, b := series[j-1], series[j]
		if b.at >= end {
			part := float64(end-a.at) / float64(b.at-a.at)
			return float64(a.payload-series[i].payload) + part*float64(b.payload-a.payload)
		}
	}
	return float64(series[len(series)-1].payload - series[i].payload)
}

// TestBankGoodput compares measure's goodput with the payload that the link's counters
// carried in as long a time from the first data on, less what was sent twice. About eight
// minutes.
func TestBankGoodput(t *testing.T) {
	bankOnly(t)
	for _, c := range []struct {
		path, time string
		slow       bool // may be measured beside others
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
							m, series := measureInLab(t, c.path, kind, d, "-t", c.time)
							i := dataFrom(series)
							if i == len(series) {
								t.Fatal("the link carried no data")
							}
							payload := within(series, i, time.Duration(m.Duration*float64(time.Second))) - float64(m.twice)
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

// Every byte that measure counts, and little else, is in the link's counters.
func TestLinkCountersHoldWhatWasMeasured(t *testing.T) {
	for _, kind := range []string{"native", "iperf3"} {
		for _, d := range []transfer.Direction{transfer.Up, transfer.Down} {
			t.Run(kind+" "+string(d), func(t *testing.T) {
				t.Parallel()
				const bytes = 1 << 20
				m, series := measureInLab(t, "rate=20mbit,rtt=10ms,queue=2MB", kind, d, "-n", fmt.Sprint(bytes))
				if m.Bytes != bytes && !(kind == "iperf3" && m.Bytes >= bytes && m.Bytes < bytes+128<<10) {
					t.Errorf("%d bytes of %d", m.Bytes, bytes)
				}
				extra := series[len(series)-1].payload - m.Bytes - m.twice
				if extra < 0 || extra > 24<<10 {
					t.Errorf("the link carried %d bytes more than the %d that were measured and the %d sent again", extra, m.Bytes,
						m.twice)
				}
				if math.IsNaN(m.GoodputBps) || m.GoodputBps > 20e6 {
					t.Errorf("%g bit/s over a link of 20 Mbit/s", m.GoodputBps)
				}
			})
		}
	}
}
