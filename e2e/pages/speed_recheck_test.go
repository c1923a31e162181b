//go:build linux

package pages

import (
	"encoding/json"
	"os/exec"
	"strings"
	"testing"

	"github.com/fullpipe-net/fullpipe/e2e/harness"
	printed "github.com/fullpipe-net/fullpipe/internal/record"
)

// TestRecheckOfAnNDT7Server checks that recheck tests an ndt7 server on the user's own network each time it is
// called, in both directions, and that the results are one series in the history.
func TestRecheckOfAnNDT7Server(t *testing.T) {
	t.Parallel()
	s := startSpeed(t)
	far := "ndt7://" + strings.TrimPrefix(s.address, "http://")
	for n := range 2 {
		recheck := exec.Command(harness.Program(t), "recheck", far, "-t", "500ms", "--direction", "both",
			"--day-bytes", "0", "--json") // loopback may move more than a day's budget
		recheck.Env = s.env
		out, err := recheck.Output()
		var doc printed.Recheck
		if err != nil || json.Unmarshal(out, &doc) != nil || len(doc.Tests) != 1 {
			t.Fatalf("%v: %s", err, out)
		}
		one := doc.Tests[0]
		if one.Error != nil || one.Skipped != "" || len(one.Directions) != 2 {
			t.Fatalf("%s", out)
		}
		for _, d := range one.Directions {
			if d.GoodputBps == nil || *d.GoodputBps < 1e6 || d.Results != n+1 {
				t.Errorf("%d: %+v", n, d)
			}
		}
	}
	list := exec.Command(harness.Program(t), "history", far, "--json")
	list.Env = s.env
	out, err := list.Output()
	var all printed.History
	if err != nil || json.Unmarshal(out, &all) != nil || len(all.Runs) != 2 ||
		all.Runs[0].PathKey != all.Runs[1].PathKey {
		t.Errorf("%v: %s", err, out)
	}
}
