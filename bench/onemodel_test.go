//go:build linux

package bench

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"testing"

	"github.com/fullpipe-net/fullpipe/e2e/harness"
)

// oneModelKey is the key of the server in the lab, which only its near host reaches.
const oneModelKey = "abababababababababababababababababababababababababababababababab"

// TestBankOneModel repeats the measurements of the paths in internal/predict/testdata/lab.jsonl. FULLPIPE_BANK_SERIES
// is a file for the results.
func TestBankOneModel(t *testing.T) {
	bankOnly(t)
	file, err := os.Open("../internal/predict/testdata/lab.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	out := io.Discard
	if name := os.Getenv("FULLPIPE_BANK_SERIES"); name != "" {
		series, err := os.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		defer series.Close()
		out = series
	}
	program := harness.Program(t)
	lines := json.NewDecoder(file)
	var runs, within int
	widest := 0.0 // largest relative difference from the recorded median
	for {
		var run oneModelRun
		if err := lines.Decode(&run); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		recorded := median(run.Steady)
		alone(t, func() { run.measure(t, program) })
		if err := json.NewEncoder(out).Encode(run); err != nil {
			t.Fatal(err)
		}
		difference := max(median(run.Steady)/recorded, recorded/median(run.Steady)) - 1
		runs++
		if difference <= 0.15 {
			within++
		}
		widest = max(widest, difference)
		t.Logf("%s, %d: %.4g Mbit/s, recorded %.4g", run.Path, run.Largest, median(run.Steady)/1e6, recorded/1e6)
	}
	record(t, bankRow{Section: "Predictions", Command: "make bank RUN=TestBankOneModel",
		Case:     "6 paths, 10 Mbit/s to 1 Gbit/s and 10 to 300 ms, on 4 systems",
		Claim:    "the recorded goodput that predict, plan and audit are tested against, within 15 %",
		Measured: fmt.Sprintf("%d of %d", within, runs), Spread: fmt.Sprintf("%.0f %% at most", 100*widest),
		Verdict: passed(within == runs)})
}

// oneModelRun is a line of lab.jsonl: three transfers over one path.
type oneModelRun struct {
	Path    string    `json:"path"`
	Largest int       `json:"largest_buffer_bytes,omitempty"`
	Seconds int       `json:"seconds"`
	Goodput []float64 `json:"goodput_bps"`
	Steady  []float64 `json:"steady_goodput_bps"`
}

func (r *oneModelRun) measure(t *testing.T, program string) {
	r.Goodput = nil
	r.Steady = nil
	buffers := ""
	if r.Largest > 0 {
		buffers = fmt.Sprintf("echo 4096 131072 %d > /proc/sys/net/ipv4/tcp_rmem; "+
			"echo 4096 16384 %[1]d > /proc/sys/net/ipv4/tcp_wmem; ", r.Largest)
	}
	for range 3 {
		serve := fmt.Sprintf("%sexec %s serve --key %s", buffers, program, oneModelKey)
		measure := fmt.Sprintf("%ssleep 1; exec %s measure $FULLPIPE_FAR --key %s --time %ds --json", buffers, program,
			oneModelKey, r.Seconds)
		text, err := exec.CommandContext(t.Context(), program, "lab", r.Path, "--far", serve+" >/dev/null 2>&1", "--", "sh",
			"-c", measure).Output()
		var doc struct {
			Directions []struct {
				Goodput float64 `json:"goodput_bps"`
				Steady  float64 `json:"steady_goodput_bps"`
			} `json:"directions"`
		}
		if jsonErr := json.Unmarshal(text, &doc); jsonErr != nil || len(doc.Directions) == 0 {
			t.Fatalf("%s: %v: %s", r.Path, err, text)
		}
		r.Goodput = append(r.Goodput, doc.Directions[0].Goodput)
		r.Steady = append(r.Steady, doc.Directions[0].Steady)
	}
}
