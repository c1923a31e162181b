//go:build linux

package bench

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/fullpipe-net/fullpipe/e2e/harness"
	printed "github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/stats"
)

// requestLoad is the result of a load of requests over loopback.
type requestLoad struct{ perSecond, p50 float64 }

// TestBankRequests compares with neper's tcp_rr and tcp_crr ($NEPER is the directory of the two programs): requests of
// 200 bytes and responses of 1,000, client and server on a core of their own, runs in turn.
func TestBankRequests(t *testing.T) {
	bankOnly(t)
	dir := cmp.Or(os.Getenv("NEPER"), "/usr/local/bin")
	if _, err := os.Stat(filepath.Join(dir, "tcp_rr")); err != nil {
		t.Fatalf("neper's programs: %v", err)
	}
	program := harness.Program(t)
	for _, method := range []string{"rr", "crr"} {
		for _, flows := range []int{1, 16} {
			t.Run(fmt.Sprintf("%s/%d", method, flows), func(t *testing.T) {
				bankRequests(t, program, filepath.Join(dir, "tcp_"+method), method, flows)
			})
		}
	}
}

func bankRequests(t *testing.T, program, neper, method string, flows int) {
	var ours, theirs []requestLoad
	each := func(runs []requestLoad, of func(requestLoad) float64) (all []float64) {
		for _, r := range runs {
			all = append(all, of(r))
		}
		return all
	}
	perSecond := func(l requestLoad) float64 { return l.perSecond }
	p50 := func(l requestLoad) float64 { return 1e6 * l.p50 }
	runs := exact{want: 8, crowded: true}
	for runs.more() {
		alone(t, func() {
			tools := []func(){
				func() { theirs = append(theirs, runNeper(t, neper, flows)) },
				func() { ours = append(ours, runRequests(t, program, method, flows)) },
			}
			if runs.counted%2 == 1 {
				slices.Reverse(tools)
			}
			for _, run := range tools {
				run()
			}
		})
		runs.keep(onTime)
	}
	ratio := stats.Gain(each(theirs, perSecond), each(ours, perSecond), 0.95)
	row := bankRow{Section: "requests", Case: fmt.Sprintf("loopback, %d at a time, against neper's %s", flows,
		filepath.Base(neper)),
		Claim: "at least 0.9 × its requests a second",
		Measured: fmt.Sprintf("× %.3f (%.0f against %.0f)", ratio.Mid, median(each(ours, perSecond)),
			median(each(theirs, perSecond))),
		Spread:  fmt.Sprintf("× %.3f to × %.3f (95 %%) of %d pairs", ratio.Low, ratio.High, len(ours)),
		Verdict: byInterval(ratio.Mid >= 0.9, ratio.Low >= 0.9 || ratio.High < 0.9),
		Command: fmt.Sprintf("NEPER=DIR make bank RUN=TestBankRequests (measure --%s --concurrency %d -t 3s)", method, flows)}
	record(t, row)
	if method == "crr" { // neper times the request alone, without the connection
		return
	}
	above := median(each(ours, p50)) - median(each(theirs, p50))
	row.Claim = "a median at most 5 µs above its median"
	row.Measured = fmt.Sprintf("%+.1f µs (%.1f against %.1f)", above, median(each(ours, p50)), median(each(theirs, p50)))
	row.Spread = fmt.Sprintf("%.1f to %.1f µs against %.1f to %.1f of %d pairs", slices.Min(each(ours, p50)),
		slices.Max(each(ours, p50)), slices.Min(each(theirs, p50)), slices.Max(each(theirs, p50)), len(ours))
	row.Verdict = passed(above <= 5)
	record(t, row)
}

// pinned returns a command on one core.
func pinned(core int, program string, args ...string) *exec.Cmd {
	return exec.Command("taskset", append([]string{"-c", strconv.Itoa(core), program}, args...)...)
}

func runNeper(t *testing.T, program string, flows int) requestLoad {
	t.Helper()
	shared := []string{"-F", strconv.Itoa(flows), "-T", "1", "-Q", "200", "-R", "1000", "-l", "3"}
	server := pinned(0, program, shared...)
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	defer server.Wait()
	var out bytes.Buffer
	client := pinned(1, program, append(shared, "-c", "-H", "127.0.0.1", "-p", "50")...)
	client.Stdout = &out
	if err := client.Run(); err != nil {
		server.Process.Kill()
		t.Fatalf("%v: %v: %s", client.Args, err, out.String())
	}
	var l requestLoad
	for line := range strings.Lines(out.String()) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		v, err := strconv.ParseFloat(value, 64)
		switch {
		case err != nil:
		case name == "throughput":
			l.perSecond = v
		case name == "latency_p50":
			l.p50 = v
		}
	}
	if l.perSecond == 0 {
		t.Fatalf("%v: %s", client.Args, out.String())
	}
	return l
}

func runRequests(t *testing.T, program, method string, flows int) requestLoad {
	t.Helper()
	server := pinned(0, program, "serve", "--listen", "127.0.0.1:5298")
	text, _ := runPair(t, server, "key: ", func(line string) *exec.Cmd {
		c := pinned(1, program, "measure", "127.0.0.1:5298", "--json", "--no-history", "--"+method, "--concurrency",
			strconv.Itoa(flows), "--request-size", "200B", "--response-size", "1000B", "-t", "3s")
		_, key, _ := strings.Cut(line, "key: ")
		c.Env = append(os.Environ(), "FULLPIPE_KEY="+key)
		return c
	})
	var doc printed.MeasureRequests
	if err := json.Unmarshal(text, &doc); err != nil || doc.Turns == nil {
		t.Fatalf("fullpipe: %v\n%s", err, text)
	}
	return requestLoad{doc.RequestsPerS, doc.Turns.P50S}
}
