//go:build linux

package bench

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/fullpipe-net/fullpipe/e2e/harness"
)

// TestBankTimedEnds runs a thousand timed tests, which takes about seven minutes.
func TestBankTimedEnds(t *testing.T) {
	bankOnly(t)
	runs, failures := harness.RunTimedEnds(t, 1000/len(harness.TimedEndCases)+1, 4)
	record(t, bankRow{Section: "The server under load", Case: "real iperf3 clients end timed tests, " +
		strconv.Itoa(len(harness.TimedEndCases)) + " sets of options",
		Claim: "none is cut off", Measured: fmt.Sprintf("%d of %d failed", len(failures), runs), Spread: "1 run each",
		Verdict: passed(len(failures) == 0), Command: "iperf3 -c HOST -t 1 -R …, four at once on loopback"})
	if len(failures) > 0 {
		t.Log(strings.Join(failures[:min(len(failures), 10)], "; "))
	}
}
