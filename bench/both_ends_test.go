//go:build linux

package bench

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"testing"

	"github.com/fullpipe-net/fullpipe/e2e/harness"
	"github.com/fullpipe-net/fullpipe/internal/lab"
	"github.com/fullpipe-net/fullpipe/internal/model"
	printed "github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// TestBankBothEnds applies tune's settings at both ends of the demo's path of today. One stream with automatic
// buffers must then carry at least 93 % of the line's payload, and undo must restore both hosts.
func TestBankBothEnds(t *testing.T) {
	bankOnly(t)
	const profile, rate, asked = "rate=1gbit,rtt=100ms,stack=linux-6.1", 1e9, 0.93
	line := model.Goodput(rate, 1448, model.IPHeaders+model.TimestampBytes)
	for _, direction := range []transfer.Direction{transfer.Up, transfer.Down} {
		t.Run(string(direction), func(t *testing.T) {
			// A sender and a receiver of 1 Gbit/s keep two processors busy by themselves. Only the link's own lateness counts
			// here, not that of an idle program.
			loop := exact{crowded: true}
			var doc printed.Tune
			equal := true
			for loop.more() {
				alone(t, func() { doc, equal = bothEnds(t, profile, direction) })
				if counts := loop.keep(doc.Late); !counts {
					t.Logf("dropped, the lab was late: %v, equal %v, %+v", carriedAtBothEnds(&doc)/line, equal, doc.Late)
				}
			}
			if carriedAtBothEnds(&doc) == 0 {
				t.Fatalf("%+v", doc)
			}
			a := doc.Directions[0].Applied
			row := func(claim, measured, spread string, ok bool) {
				record(t, loop.into(bankRow{Section: "both ends", Case: string(direction) + " " + profile, Claim: claim,
					Measured: measured, Spread: spread, Verdict: passed(ok),
					Command: fmt.Sprintf("fullpipe tune lab:%s --direction %s --apply --apply-far", profile, direction)}))
			}
			spread := "one run"
			if ci := a.After.CI95Bps; ci != nil {
				spread = fmt.Sprintf("%.3f to %.3f; from %.3f", ci[0]/line, ci[1]/line, a.Before.MedianBps/line)
			}
			share := a.After.MedianBps / line
			row("one stream carries at least 0.93 of the line's payload, applied at both ends", fmt.Sprintf("%.3f", share),
				spread, a.Kept && share >= asked)
			row("after undo on each, both hosts are as they were", fmt.Sprint(equal), "sysctls, routes, queues", equal)
		})
	}
}

// carriedAtBothEnds returns the goodput with the applied settings in bit/s, or 0 if nothing was applied.
func carriedAtBothEnds(doc *printed.Tune) float64 {
	if len(doc.Directions) != 1 || doc.Directions[0].Applied == nil || doc.Directions[0].Applied.After == nil {
		return 0
	}
	return doc.Directions[0].Applied.After.MedianBps
}

// bothEnds tunes and applies in a lab of its own, undoes that at both ends, and reports whether both are as they
// were.
func bothEnds(t *testing.T, profile string, direction transfer.Direction) (doc printed.Tune, equal bool) {
	t.Helper()
	program := harness.Program(t)
	l, _ := harness.StartLab(t, profile)
	defer l.Close()
	env := []string{"FULLPIPE_KEY=" + harness.TuneKey, "FULLPIPE_STATE=" + t.TempDir()}
	before := harness.HostSettings(t, l.Near) + harness.HostSettings(t, l.Far)
	far, err := l.Far.Start(lab.Command{Args: []string{program, "serve", "--quiet"}, Env: env, Stderr: os.Stderr})
	if err != nil {
		t.Fatal(err)
	}
	l.Far.AwaitListener(t.Context(), far)
	var out, says bytes.Buffer
	args := []string{program, "tune", "fullpipe://" + l.Far.Addr.String(), "--direction", string(direction), "--apply",
		"--apply-far", "--yes", "--json"}
	status, err := l.Near.Run(lab.Command{Args: args, Env: env, Stdout: &out, Stderr: &says})
	if err != nil || json.Unmarshal(out.Bytes(), &doc) != nil {
		t.Fatalf("%d, %v: %s%s", status, err, out.String(), says.String())
	}
	for _, e := range []*lab.End{l.Near, l.Far} {
		if status, err := e.Run(lab.Command{Args: []string{program, "undo"}, Env: env}); err != nil || status != 0 {
			t.Errorf("undo: %d, %v", status, err)
		}
	}
	after := harness.HostSettings(t, l.Near) + harness.HostSettings(t, l.Far)
	if after != before {
		t.Log(harness.AddedLines(before, after))
	}
	return doc, after == before
}
