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

	"github.com/fullpipe-net/fullpipe/internal/advice"
	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/render/text"
	"github.com/fullpipe-net/fullpipe/internal/report"
	"github.com/fullpipe-net/fullpipe/internal/sweep"
	"github.com/fullpipe-net/fullpipe/internal/testenv/must"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/units"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

var update = flag.Bool("update", false, "write the golden files")

// swept is a small sweep with one of everything: measured, predicted, clipped, refused,
// failed and missing cells.
func swept() *record.Sweep {
	axes := sweep.Axes{Send: []int{16384, 65536, 262144, 0}, Receive: []int{65536, 262144}, Write: []int{0},
		Directions: []transfer.Direction{transfer.Up}, Congestion: []string{""}}
	doc := &record.Sweep{Peer: "host", Axes: axes.Record(), RunS: 1, Seed: 1, PrecisionRatio: 0.03, BudgetS: 60,
		ElapsedS: 24, BytesSent: 123456789, Paths: []record.SweepPath{{Direction: transfer.Up,
			RTTMin: units.Duration(12 * time.Millisecond), MSSBytes: 1448, CapacityBps: 96e6, BDPBytes: 144e3,
			Fix: advice.Fixes(verdict.Verdict{Limiter: verdict.ReceiverWindow}, advice.Facts{GoodputBps: 96e6, RTTS: 0.012,
				MSSBytes: 1448})}}}
	for i, setup := range axes.Cells() {
		c := record.SweepCell{SweepSetup: setup}
		mid := 96e6 * math.Min(1, math.Min(float64(c.Send), float64(c.Receive))/144e3)
		if c.Send == 0 {
			mid = 95e6
		}
		switch i {
		case 0:
			c.Predicted, c.GoodputBps, c.CI95Bps, c.Limiter = true, mid, &[2]float64{mid * 0.98, mid * 1.02}, verdict.SendBuffer
		case 4:
			c.Problems = []string{"nothing arrived in 1 s"}
		case 5:
			c.Refused = "Near.SendBuffer cannot be had: it is too large"
		default:
			c.GoodputBps, c.CI95Bps, c.Tight = mid, &[2]float64{mid * 0.99, mid * 1.01}, i != 3
			c.Best, c.Enough = i == 6, i == 6
			c.Limiter, c.Runs = verdict.ReceiverWindow, []float64{mid * 0.995, mid, mid * 1.005}
			c.SendBuffer = record.NewBuffer(&transfer.Buffer{Requested: c.Send, Granted: 2 * c.Send, Effective: c.Send})
			c.ReceiveBuffer = record.NewBuffer(&transfer.Buffer{Requested: c.Receive, Granted: 2 * c.Receive,
				Effective: 65535, Clipped: i == 2})
		}
		doc.Cells = append(doc.Cells, c)
	}
	return doc
}

// sweptDocument is the document of swept as the command makes it.
func sweptDocument(h record.Header) *record.Sweep {
	doc := swept()
	report.Sweep(h, doc)
	return doc
}

func TestSweepText(t *testing.T) {
	var out bytes.Buffer
	text.Write(&out, sweptDocument(record.Header{}))
	golden(t, "testdata/sweep.txt", out.Bytes())
}

// golden compares what is printed with a file.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	if *update {
		must.Do(t, os.WriteFile(name, got, 0o644))
	}
	want := must.Get(os.ReadFile(name))(t)
	if !bytes.Equal(got, want) {
		t.Errorf("%s is not what is printed now; go test ./internal/render/html -run %s -update writes it:\n%s", name,
			t.Name(), got)
	}
}

func TestSweepJSON(t *testing.T) {
	text := must.Get(json.Marshal(sweptDocument(record.Header{Schema: "fullpipe/sweep/v1"})))(t)
	var doc struct {
		Axes struct {
			Send      []int `json:"send_buffer_bytes"`
			Automatic bool  `json:"send_buffer_automatic"`
		}
		Cells []map[string]any
	}
	must.Do(t, json.Unmarshal(text, &doc))
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
	must.Do(t, text.SweepCSV(&out, sweptDocument(record.Header{})))
	rows, err := csv.NewReader(&out).ReadAll()
	if err != nil || len(rows) != 9 {
		t.Fatalf("%d rows, %v", len(rows), err)
	}
	if row := strings.Join(rows[4], ","); !strings.HasPrefix(row,
		"up,,automatic,65536,automatic,95000000,94050000,95950000,3,false,false,receiver-window,") {
		t.Error(row)
	}
}
