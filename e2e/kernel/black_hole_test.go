//go:build linux

package kernel

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fullpipe-net/fullpipe/e2e/harness"
	printed "github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// TestTuneFindsSegmentsThatPass checks a path whose routers silently drop full segments. tune finds the size that
// passes and sets it on the route, and undo restores the host; so does its document, applied later.
func TestTuneFindsSegmentsThatPass(t *testing.T) {
	t.Parallel()
	program := harness.Program(t)
	cmd := exec.Command(program, "lab", "rate=20mbit,rtt=20ms,mtu=1400,icmp=drop", "--far", "exec $F serve --quiet", "--",
		"sh", "-euc", harness.SysctlFunction+`
settings() { sysctls; ip -j route; tc -j qdisc | sed 's/"handle":"[^"]*",//g'; }
settings > before
$F tune $FULLPIPE_FAR --direction down --apply --yes --json > tuned.json
settings > with
$F undo > undone
settings | cmp - before
$F apply --yes tuned.json > applied
ip -j route | grep '"advmss":1360' > stored
$F undo > undone
settings | cmp - before
grep -c '"advmss":1360' with
cat tuned.json
`)
	cmd.Dir = t.TempDir()
	cmd.Env = append(os.Environ(), "F="+program, "FULLPIPE_STATE="+filepath.Join(cmd.Dir, "state"),
		"FULLPIPE_KEY="+harness.TuneKey)
	printedText, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, printedText)
	}
	out := string(printedText)
	count, text, _ := strings.Cut(out, "\n")
	var doc printed.Tune
	if err := json.Unmarshal([]byte(text), &doc); err != nil || len(doc.Directions) != 1 || count != "1" {
		t.Fatalf("%v: %s", err, out)
	}
	d := doc.Directions[0]
	if d.Before.Limiter != verdict.MTUBlackHole || d.Before.MedianBps != 0 || d.Chosen == nil ||
		d.Chosen.MSSBytes != 1360 || d.Gain != nil || d.After == nil ||
		d.After.MedianBps < 2e6 { // packets that do not pass give no goodput
		t.Errorf("%+v", d)
	}
	if a := d.Applied; a == nil || !a.Kept {
		t.Errorf("%+v", a)
	}
}
