//go:build linux

package harness

import (
	"bytes"
	"encoding/json"
	"os"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/lab"
	"github.com/fullpipe-net/fullpipe/internal/link"
)

// linePayload is a series of a link's counters: TCP payload that was delivered.
type linePayload struct {
	at       []time.Time
	up, down []float64 // bytes
}

func payloadOf(c link.Counters) float64 {
	return float64(c.DeliveredBytes - headerBytesPerSegment*c.Delivered)
}

const watchedEvery = 20 * time.Millisecond

// watchLine reads the counters until stop is called. stop returns them.
func watchLine(t *testing.T, l *lab.Lab) (stop func() linePayload) {
	over := make(chan struct{})
	ended := make(chan linePayload)
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
			p.up = append(p.up, payloadOf(up))
			p.down = append(p.down, payloadOf(down))
			select {
			case <-tick.C:
			case <-over:
				return
			}
		}
	}()
	return func() linePayload { close(over); return <-ended }
}

// within returns the payload rate of a test of the given length: of the span with the most payload, because before
// and after the test the link carries almost nothing.
func (p linePayload) within(bytes []float64, length time.Duration) (bps float64) {
	upTo := func(i int, d time.Duration) float64 { // payload at d after sample i
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

// textsOf is the rate of the measurements that a server sends during a download. They are no load.
const textsOf = 4 * 560 * 8 // bit/s: four a second

// ComparePage runs the page's test in both directions and adds the ratios of reported goodput and delivered
// payload.
func (s *SpeedLab) ComparePage(t *testing.T, ratios map[string]float64) {
	stop := watchLine(t, s.Lab)
	result := s.RunTest(t, "many=0&ms=5000", 0)
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

// CompareNDT7 is ComparePage for fullpipe's own ndt7 client.
func (s *SpeedLab) CompareNDT7(t *testing.T, ratios map[string]float64) {
	for _, way := range []string{"download", "upload"} {
		direction := map[string]string{"download": "down", "upload": "up"}[way]
		stop := watchLine(t, s.Lab)
		var out bytes.Buffer
		status, err := s.Near.Run(lab.Command{Args: []string{Program(t), "measure", "ndt7://" +
			lab.FarAddr.String() + ":" + SpeedPort, "-d", direction, "-t", "5s", "--json"}, Stdout: &out, Stderr: os.Stderr})
		line := stop()
		var doc struct{ Directions []MeasuredTransfer }
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
