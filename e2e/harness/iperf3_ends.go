//go:build linux

package harness

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
	"github.com/fullpipe-net/fullpipe/internal/testenv"
)

// TimedEndCases are tests that the client's clock ends while the server sends as fast as it can, so that the last
// block is cut short.
var TimedEndCases = []string{"-R", "-R -P 3", "-R -w 32K", "-R -w 4M", "-R -l 1M", "-R -l 1000", "-R -Z", "-R -N",
	"-R -C reno", "-R -M 1000", "-R -b 400M",
	"-R -O 1", "-R --get-server-output", "--bidir", "--bidir -P 2", ""}

// RunTimedEnds runs each of TimedEndCases several times, atOnce at a time, and returns what failed.
func RunTimedEnds(t *testing.T, times, atOnce int) (runs int64, failures []string) {
	t.Helper()
	program := testenv.Program(t, testenv.Iperf3)
	reports := make(chan iperf3.Report)
	t.Cleanup(func() { close(reports) }) // after the server has ended
	go func() {
		for range reports { // the server's report does not matter here
		}
	}()
	port := strconv.Itoa(serveIperf3Limit(t, "127.0.0.1:0", reports, 64))
	var mu sync.Mutex
	var running sync.WaitGroup
	var next, made atomic.Int64
	for range atOnce {
		running.Go(func() {
			for i := next.Add(1) - 1; i < int64(times*len(TimedEndCases)); i = next.Add(1) - 1 {
				args := TimedEndCases[i%int64(len(TimedEndCases))]
				out, err := exec.CommandContext(t.Context(), program, append([]string{"-c", "127.0.0.1", "-p", port, "-J", "-t",
					"1"}, strings.Fields(args)...)...).Output()
				var client Iperf3Output
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
