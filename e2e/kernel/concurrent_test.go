//go:build linux

package kernel

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/fullpipe-net/fullpipe/e2e/harness"
	"github.com/fullpipe-net/fullpipe/internal/probe"
	printed "github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/testenv"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// TestConcurrentTests runs tests through one server in a lab. Those that ran at the same time report it and have
// lower confidence; those that ran one after the other do not.
func TestConcurrentTests(t *testing.T) {
	t.Parallel()
	program := harness.Program(t)
	const measure = "$PROGRAM measure $FULLPIPE_FAR --json"
	for _, c := range []struct {
		name, script string
		concurrent   bool
	}{
		{"two clients", measure + " -t 3s >$OUT/a & " + measure + " -t 3s >$OUT/b; wait $!", true},
		{"one after the other", measure + " -t 1s >$OUT/a; " + measure + " -t 1s >$OUT/b", false},
		{"both directions of one", measure + " -t 2s --bidir >$OUT/a", false},
		{"a stock client", "iperf3 -c $FULLPIPE_FAR -t 3 >/dev/null & " + measure + " -t 2s >$OUT/a; wait $!", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if c.name == "a stock client" {
				testenv.Need(t, testenv.Iperf3)
			}
			out := t.TempDir()
			far := program + " serve --iperf3 --quiet"
			cmd := exec.Command(program, "lab", "rate=20mbit,rtt=20ms,queue=2bdp", "--far", far, "--", "bash",
				"-euc", "until (exec 3<>/dev/tcp/$FULLPIPE_FAR/5201) 2>/dev/null; do sleep 0.02; done; "+c.script)
			cmd.Env = append(os.Environ(), "FULLPIPE_KEY="+probe.NewKey().String(), "PROGRAM="+program, "OUT="+out)
			if text, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, text)
			}
			files, err := filepath.Glob(out + "/*")
			if err != nil || len(files) == 0 {
				t.Fatalf("%d results, %v", len(files), err)
			}
			for _, file := range files {
				checkConcurrent(t, file, c.concurrent)
			}
		})
	}
}

// checkConcurrent checks whether each direction of a result reports that another test ran at the same time.
func checkConcurrent(t *testing.T, file string, want bool) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var doc printed.Measure
	if err := json.Unmarshal(text, &doc); err != nil || len(doc.Directions) == 0 {
		t.Fatalf("%v: %s", err, text)
	}
	for _, d := range doc.Directions {
		var concurrent verdict.Evidence
		for _, e := range d.Evidence {
			if e.Code == verdict.ConcurrentTests {
				concurrent = e
			}
		}
		if got := concurrent.Code != ""; got != want {
			t.Errorf("%s: another test at the same time: %v, want %v: %+v", d.Direction, got, want, d.Evidence)
		}
		if want && (d.Confidence == verdict.High || concurrent.Values["tests"] != 1 || concurrent.Values["beside_s"] <= 0 ||
			concurrent.Text == "") {
			t.Errorf("%s, %s confidence, %+v", d.Limiter, d.Confidence, concurrent)
		}
	}
}
