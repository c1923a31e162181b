package html

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"flag"
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/render/text"
	"github.com/fullpipe-net/fullpipe/internal/report"
	"github.com/fullpipe-net/fullpipe/internal/stats"
	"github.com/fullpipe-net/fullpipe/internal/sweep"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/units"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

var update = flag.Bool("update", false, "write the golden files")

// swept is a small sweep with one of everything: measured, predicted, clipped, refused,
// failed and missing cells.
func swept() *sweep.Result {
	axes := sweep.Axes{Send: []int{16384, 65536, 262144, 0}, Receive: []int{65536, 262144}, Write: []int{0},
		Directions: []transfer.Direction{transfer.Up}, Congestion: []string{""}}
	r := &sweep.Result{Identity: sweep.Identity{Peer: "host", Axes: axes, Time: time.Second, Seed: 1},
		Rules: sweep.Rules{Precision: 0.03, Budget: time.Minute}, Elapsed: 24 * time.Second, Bytes: 123456789,
		Paths: []record.SweepPath{{Direction: transfer.Up, RTTMin: units.Duration(12 * time.Millisecond),
			MSSBytes: 1448, CapacityBps: 96e6, BDPBytes: 144e3}}}
	for i, c := range axes.Cells() {
		m := sweep.Measured{Cell: c}
		mid := 96e6 * math.Min(1, math.Min(float64(c.Send), float64(c.Receive))/144e3)
		if c.Send == 0 {
			mid = 95e6
		}
		switch i {
		case 0:
			m.Limiter, m.Predicted = verdict.SendBuffer, &sweep.Prediction{Interval: stats.Interval{Low: mid * 0.98, Mid: mid,
				High: mid * 1.02}, Limiter: verdict.SendBuffer}
		case 4:
			m.Problems = []string{"nothing arrived in 1 s"}
		case 5:
			m.Refused = "Near.SendBuffer cannot be had: it is too large"
		default:
			m.Limiter, m.Interval, m.Tight = verdict.ReceiverWindow, stats.Interval{Low: mid * 0.99, Mid: mid, High: mid * 1.01},
				i != 3
			for _, f := range []float64{0.995, 1, 1.005} {
				m.Runs = append(m.Runs, sweep.Trial{Cell: i, GoodputBps: mid * f, Settled: true, Limiter: m.Limiter,
					Send:    &transfer.Buffer{Requested: c.Send, Granted: 2 * c.Send, Effective: c.Send},
					Receive: &transfer.Buffer{Requested: c.Receive, Granted: 2 * c.Receive, Effective: 65535, Clipped: i == 2}})
			}
		}
		r.Cells = append(r.Cells, m)
	}
	return r
}

func TestSweepText(t *testing.T) {
	var out bytes.Buffer
	text.Sweep(&out, report.Sweep(record.Header{}, swept()))
	golden(t, "testdata/sweep.txt", out.Bytes())
}

// golden compares what is printed with a file.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(name, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s is not what is printed now; go test ./internal/render/html -run %s -update writes it:\n%s", name,
			t.Name(), got)
	}
}

func TestSweepJSON(t *testing.T) {
	text, err := json.Marshal(report.Sweep(record.Header{Schema: "fullpipe/sweep/v1"}, swept()))
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Axes struct {
			Send      []int `json:"send_buffer_bytes"`
			Automatic bool  `json:"send_buffer_automatic"`
		}
		Cells []map[string]any
	}
	if err := json.Unmarshal(text, &doc); err != nil {
		t.Fatal(err)
	}
	if len(doc.Axes.Send) != 3 || !doc.Axes.Automatic || len(doc.Cells) != 8 {
		t.Fatalf("%s", text)
	}
	has := func(i int, key string) bool { _, ok := doc.Cells[i][key]; return ok }
	switch {
	case doc.Cells[0]["predicted"] != true || has(0, "runs_bps") || !has(0, "ci95_bps"):
		t.Errorf("predicted: %v", doc.Cells[0])
	case has(3, "send_buffer_bytes") || doc.Cells[3]["predicted"] != false:
		t.Errorf("automatic: %v", doc.Cells[3])
	case has(4, "goodput_bps") || !has(4, "problems") || has(5, "goodput_bps") || !has(5, "refused"):
		t.Errorf("not measured: %v, %v", doc.Cells[4], doc.Cells[5])
	}
}

func TestSweepCSV(t *testing.T) {
	var out bytes.Buffer
	if err := text.SweepCSV(&out, report.Sweep(record.Header{}, swept())); err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(&out).ReadAll()
	if err != nil || len(rows) != 9 {
		t.Fatalf("%d rows, %v", len(rows), err)
	}
	if row := strings.Join(rows[4], ","); !strings.HasPrefix(row,
		"up,,automatic,65536,automatic,95000000,94050000,95950000,3,false,false,receiver-window,") {
		t.Error(row)
	}
}
