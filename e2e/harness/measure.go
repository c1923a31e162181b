//go:build linux

package harness

import (
	"encoding/json"
	"os"
	"os/exec"
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/probe"
	printed "github.com/fullpipe-net/fullpipe/internal/record"
)

// MeasureCapacity runs `measure --udp --capacity` in both directions of a lab for a time.
func MeasureCapacity(t *testing.T, profile, args string) []printed.CapacityDirection {
	t.Helper()
	program := Program(t)
	cmd := exec.Command(program, "measure", "lab:"+profile, "--udp", "--capacity", "-d", "both", "-t", args, "--json")
	cmd.Env = os.Environ()
	cmd.Stderr = t.Output()
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var doc printed.Capacity
	if err := json.Unmarshal(out, &doc); err != nil || len(doc.Directions) != 2 {
		t.Fatalf("%v: %s", err, out)
	}
	return doc.Directions
}

// Measure runs `measure` at the near end of a lab whose far end runs a command.
func Measure(t *testing.T, profile, far, args string) (doc printed.Measure) {
	t.Helper()
	return MeasureWithPrefix(t, profile, far, "", args)
}

// MeasureWithPrefix is Measure with a prefix before the program, such as "taskset -c 0 ".
func MeasureWithPrefix(t *testing.T, profile, far, before, args string) (doc printed.Measure) {
	t.Helper()
	program := Program(t)
	cmd := exec.Command(program, "lab", profile, "--far", far, "--", "bash", "-euc",
		"until (exec 3<>/dev/tcp/$FULLPIPE_FAR/5201) 2>/dev/null; do sleep 0.02; done; "+before+program+" measure "+args+
			" --json")
	cmd.Env = append(os.Environ(), "FULLPIPE_KEY="+probe.NewKey().String())
	cmd.Stderr = t.Output()
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if err := json.Unmarshal(out, &doc); err != nil || len(doc.Directions) == 0 {
		t.Fatalf("%v: %s", err, out)
	}
	return doc
}
