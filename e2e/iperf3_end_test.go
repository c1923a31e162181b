//go:build linux

package e2e

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/iperf3"
)

// timedEnds are tests that the client's clock ends while our server sends as fast as it
// can, so that a block is nearly always cut short.
var timedEnds = []string{"-R", "-R -P 3", "-R -w 32K", "-R -w 4M", "-R -l 1M", "-R -l 1000", "-R -Z", "-R -N",
	"-R -C reno", "-R -M 1000", "-R -b 400M",
	"-R -O 1", "-R --get-server-output", "--bidir", "--bidir -P 2", ""}

// endTimed runs each case so many times, several at once, and answers what went wrong.
func endTimed(t *testing.T, times, atOnce int) (runs int64, failures []string) {
	t.Helper()
	program := needIperf3(t)
	reports := make(chan iperf3.Report)
	t.Cleanup(func() { close(reports) }) // after the server has ended
	go func() {
		for range reports { // what the server says of it does not matter here
		}
	}()
	port := strconv.Itoa(ourServerFor(t, "127.0.0.1:0", reports, 64))
	var mu sync.Mutex
	var running sync.WaitGroup
	var next, made atomic.Int64
	for range atOnce {
		running.Go(func() {
			for i := next.Add(1) - 1; i < int64(times*len(timedEnds)); i = next.Add(1) - 1 {
				args := timedEnds[i%int64(len(timedEnds))]
				out, err := exec.CommandContext(t.Context(), program, append([]string{"-c", "127.0.0.1", "-p", port, "-J", "-t",
					"1"}, strings.Fields(args)...)...).Output()
				var client iperf3JSON
				made.Add(1)
				if jerr := json.Unmarshal(out, &client); jerr != nil || err != nil || client.Error != "" {
					mu.Lock()
					failures = append(failures, fmt.Sprintf("%s: %v %v %s", args, err, jerr, client.Error))
					mu.Unlock()
				}
			}
		})
	}
	running.Wait()
	return made.Load(), failures
}

// Who ends a timed test leaves what is on its way to be read.
func TestTimedTestsEndCleanly(t *testing.T) {
	t.Parallel()
	if runs, failures := endTimed(t, 2, 8); len(failures) > 0 {
		t.Errorf("%d of %d: %s", len(failures), runs, strings.Join(failures, "; "))
	}
}

// TestBankTimedEnds is the same a thousand times, about seven minutes.
func TestBankTimedEnds(t *testing.T) {
	bankOnly(t)
	runs, failures := endTimed(t, 1000/len(timedEnds)+1, 4)
	record(t, bankRow{Section: "The server under load", Case: "real iperf3 clients end timed tests, " +
		strconv.Itoa(len(timedEnds)) + " sets of options",
		Claim: "none is cut off", Measured: fmt.Sprintf("%d of %d failed", len(failures), runs), Spread: "1 run each",
		Verdict: passed(len(failures) == 0), Command: "iperf3 -c HOST -t 1 -R …, four at once on loopback"})
	if len(failures) > 0 {
		t.Log(strings.Join(failures[:min(len(failures), 10)], "; "))
	}
}
