package cli

import (
	"bufio"
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/cli/exit"
	"github.com/fullpipe-net/fullpipe/internal/testenv"
)

// A measurement in a lab as a table, as a stream, and with criteria.
func TestMeasureForms(t *testing.T) {
	testenv.Need(t, testenv.Lab)
	lab := []string{"measure", "-c", "lab:rate=20mbit,rtt=10ms", "-t", "1", "-q"}
	run := func(args ...string) (string, string, int) {
		cmd := program(t, append(slices.Clone(lab), args...)...)
		var out bytes.Buffer
		cmd.Stdout = &out
		status, errs := ended(t, cmd)
		return out.String(), errs, status
	}
	out, errs, status := run("--csv", "--fail-below", "1gbit")
	if status != exit.No || strings.Count(out, "\n") != 2 || !strings.HasPrefix(out, "peer,direction,") || errs != "" {
		t.Errorf("--csv --fail-below 1gbit: status %d\n%s%s", status, out, errs)
	}
	out, errs, status = run("--json-stream", "-i", "0.2", "-R", "--fail-below", "1mbit", "--fail-on", "receiver-window")
	events := map[string]int{}
	for lines := bufio.NewScanner(strings.NewReader(out)); lines.Scan(); {
		var line struct{ Event, Schema string }
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			t.Fatalf("%v: %s", err, lines.Text())
		}
		events[line.Event]++
		if line.Event == "result" && line.Schema != "fullpipe/measure/v1" {
			t.Errorf("%s", lines.Text())
		}
	}
	if status != 0 || events["result"] != 1 || events["interval"] < 3 || errs != "" {
		t.Errorf("--json-stream: status %d, %v\n%s", status, events, errs)
	}
	if out, _, status = run("--fail-below", "1gbit"); status != exit.No || !strings.Contains(out, "FAIL") {
		t.Errorf("status %d\n%s", status, out)
	}
}
