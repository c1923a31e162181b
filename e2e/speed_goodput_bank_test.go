//go:build linux

package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/lab"
	"github.com/fullpipe-net/fullpipe/internal/link"
)

// linePayload is what a link's counters said over time: payload of TCP that was delivered, without
// what was lost, and so without what was sent again for it.
type linePayload struct {
	at       []time.Time
	up, down []float64 // bytes
}

// headerBytes are IPv4's and TCP's with timestamps.
const headerBytes = 20 + 32

func payloadOf(c link.Counters) float64 { return float64(c.DeliveredBytes - headerBytes*c.Delivered) }

const watchedEvery = 20 * time.Millisecond

// watchLine reads the counters until stop is called, which answers them.
func watchLine(t *testing.T, l *lab.Lab) (stop func() linePayload) {
	over, ended := make(chan struct{}), make(chan linePayload)
	go func() {
		var p linePayload
		defer func() { ended <- p }()
		tick := time.NewTicker(watchedEvery)
		defer tick.Stop()
		for {
			up, down, err := l.Counters()
			if err != nil {
				t.Errorf("the link's counters: %v", err)
				return
			}
			p.at = append(p.at, time.Now())
			p.up, p.down = append(p.up, payloadOf(up)), append(p.down, payloadOf(down))
			select {
			case <-tick.C:
			case <-over:
				return
			}
		}
	}()
	return func() linePayload { close(over); return <-ended }
}

// within is the payload rate of the test that lasted for so long: of the seconds in which most
// passed, since before and after it nearly nothing does.
func (p linePayload) within(bytes []float64, length time.Duration) (bps float64) {
	upTo := func(i int, d time.Duration) float64 { // payload at so long after a reading
		at := p.at[i].Add(d)
		for j := i; j < len(p.at)-1; j++ {
			if next := p.at[j+1]; !next.Before(at) {
				part := at.Sub(p.at[j]).Seconds() / next.Sub(p.at[j]).Seconds()
				return bytes[j] + part*(bytes[j+1]-bytes[j])
			}
		}
		return bytes[len(bytes)-1]
	}
	most := 0.0
	for i := range p.at {
		most = max(most, upTo(i, length)-bytes[i])
	}
	return most * 8 / length.Seconds()
}

// textsOf is the rate of the measurements that a server tells beside a download, which is no load.
const textsOf = 4 * 560 * 8 // bit/s: four a second

// TestBankSpeedGoodput compares what tests from a browser and ndt7 say they moved with the link's
// own counters, over the same seconds.
func TestBankSpeedGoodput(t *testing.T) {
	bankOnly(t)
	for _, rate := range []string{"1mbit", "10mbit", "100mbit", "500mbit"} {
		path := "rate=" + rate + ",rtt=20ms"
		for _, how := range []string{"page", "ndt7"} {
			t.Run(rate+"/"+how, func(t *testing.T) {
				off := map[string][]float64{}
				var runs exact
				for runs.want = 3; runs.more(); {
					alone(t, func() {
						one := map[string]float64{}
						s := newSpeedLab(t, path)
						defer s.Close()
						if how == "page" {
							s.pageAgainstLine(t, one)
						} else {
							s.ndt7AgainstLine(t, one)
						}
						t.Log(path, how, one)
						if held, err := runs.keepLab(s.Lab); held && err == nil {
							for way, ratio := range one {
								off[way] = append(off[way], 100*(ratio-1))
							}
						}
					})
				}
				for _, way := range []string{"download", "upload"} {
					record(t, runs.into(goodputRow(path, how, way, off[way])))
				}
			})
		}
	}
}

// What had come while our client asked the idle path was counted as if the link had brought it in
// the test's time, which a slow line shows.
func TestNdt7CountsWhatPassed(t *testing.T) {
	t.Parallel()
	undisturbed(t, func() error {
		s := newSpeedLab(t, "rate=1mbit,rtt=20ms")
		defer s.Close()
		ratios := map[string]float64{}
		s.ndt7AgainstLine(t, ratios)
		for way, ratio := range ratios {
			if math.Abs(ratio-1) > 0.03 {
				return fmt.Errorf("%s: %.3f of what the link carried in the same seconds", way, ratio)
			}
		}
		return nil
	})
}

func goodputRow(path, how, way string, off []float64) bankRow {
	worst, least, most := 0.0, math.Inf(1), math.Inf(-1)
	for _, one := range off {
		worst, least, most = max(worst, math.Abs(one)), min(least, one), max(most, one)
	}
	what := map[string]string{"page": "/test in Chromium", "ndt7": "measure ndt7://"}[how]
	return bankRow{Section: "Test from a browser", Case: fmt.Sprintf("goodput, %s, %s, %s", path, what, way),
		Claim:    "within 3 % of the payload that the link's counters tell of the same seconds",
		Measured: fmt.Sprintf("%.2f %% off at most", worst), Spread: fmt.Sprintf("%+.2f to %+.2f %% in %d", least, most,
			len(off)), Verdict: passed(len(off) > 0 && worst <= 3), Command: "make bank RUN=TestBankSpeedGoodput"}
}

// pageAgainstLine has a browser test both ways; the ratios are of what is said and what passed.
func (s *speedLab) pageAgainstLine(t *testing.T, ratios map[string]float64) {
	stop := watchLine(t, s.Lab)
	result := s.test(t, "many=0&ms=5000", 0)
	line := stop()
	for _, d := range result.Directions {
		length := time.Duration(d.DurationS * float64(time.Second))
		if d.Direction == "up" {
			ratios["download"] = d.GoodputBps / (line.within(line.down, length) - textsOf)
		} else {
			ratios["upload"] = d.GoodputBps / line.within(line.up, length)
		}
	}
}

// ndt7AgainstLine does the same with our own client.
func (s *speedLab) ndt7AgainstLine(t *testing.T, ratios map[string]float64) {
	for _, way := range []string{"download", "upload"} {
		direction := map[string]string{"download": "down", "upload": "up"}[way]
		stop := watchLine(t, s.Lab)
		var out bytes.Buffer
		status, err := s.Near.Run(lab.Command{Args: []string{fullpipeProgram(t), "measure", "ndt7://" +
			lab.FarAddr.String() + ":" + speedPort, "-d", direction, "-t", "5s", "--json"}, Stdout: &out, Stderr: os.Stderr})
		line := stop()
		var doc struct{ Directions []counted }
		if jerr := json.Unmarshal(out.Bytes(), &doc); err != nil || status != 0 || jerr != nil || len(doc.Directions) != 1 {
			t.Fatalf("status %d, %v, %v: %s", status, err, jerr, out.String())
		}
		d := doc.Directions[0]
		length := time.Duration(d.Duration * float64(time.Second))
		if way == "download" {
			ratios[way] = d.GoodputBps / (line.within(line.down, length) - textsOf)
		} else {
			ratios[way] = d.GoodputBps / line.within(line.up, length)
		}
	}
}
