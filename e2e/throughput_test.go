//go:build linux

package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/probe"
	"github.com/fullpipe-net/fullpipe/internal/server"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// throughput is one run over loopback: what the receiver got and what it took.
type throughput struct {
	bps      float64
	cpuPerGB float64 // seconds of both processes, user and system, for 1e9 bytes
}

const throughputSeconds = 2

// TestBankThroughput compares with iperf3 on loopback: interleaved, cubic.
func TestBankThroughput(t *testing.T) {
	bankOnly(t)
	program := filepath.Join(t.TempDir(), "fullpipe")
	if out, err := exec.Command("go", "build", "-o", program, "../cmd/fullpipe").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, streams := range []int{1, 2} {
		tools := []struct {
			name string
			run  func() throughput
		}{
			{"iperf3 defaults", func() throughput { return runIperf3(t, streams) }},
			{"iperf3 -l 1M -Z", func() throughput { return runIperf3(t, streams, "-l", "1M", "-Z") }},
			{"fullpipe", func() throughput { return runFullpipe(t, program, streams) }},
		}
		runs := make([][]throughput, len(tools))
		for range 5 {
			alone(t, func() {
				for i, tool := range tools {
					runs[i] = append(runs[i], tool.run())
				}
			})
		}
		rates, costs := make([][]float64, len(tools)), make([][]float64, len(tools))
		for i := range tools {
			for _, r := range runs[i] {
				rates[i], costs[i] = append(rates[i], r.bps/1e9), append(costs[i], r.cpuPerGB)
			}
			slices.Sort(rates[i])
			slices.Sort(costs[i])
			t.Logf("%d streams, %s: %.1f Gbit/s, %.3f CPU s/GB", streams, tools[i].name, rates[i], costs[i])
		}
		defaults, best, ours := 0, 1, 2
		command := fmt.Sprintf("fullpipe measure 127.0.0.1 -t %ds -C cubic -P %d; iperf3 -c 127.0.0.1 -t %d -C cubic -P %d", throughputSeconds,
			streams, throughputSeconds, streams)
		compare := func(claim, unit, format string, a, b []float64, factor float64, atLeast bool) {
			t.Helper()
			row := bankRow{Section: "throughput", Case: fmt.Sprintf("loopback, %d stream(s)", streams), Claim: claim, Command: command,
				Measured: fmt.Sprintf(format+" against "+format+" "+unit+" (medians of 5)", a[2], b[2]),
				Spread:   fmt.Sprintf(format+" to "+format+" against "+format+" to "+format, a[0], a[4], b[0], b[4])}
			least, most := a[0], a[4] // where the claim is hardest and easiest to keep
			if !atLeast {
				least, most = -a[4], -a[0]
				factor = -factor
			}
			switch {
			case least >= factor*b[2]:
				row.Verdict = "pass"
			case most < factor*b[2]:
				row.Verdict = "fail"
			default:
				row.Verdict = "inconclusive"
				if atLeast && a[2] >= factor*b[2] || !atLeast && -a[2] >= factor*b[2] {
					row.Verdict = "pass"
				}
			}
			record(t, row)
		}
		compare("at least 1.3 × iperf3's defaults", "Gbit/s", "%.1f", rates[ours], rates[defaults], 1.3, true)
		compare("no less than iperf3 -l 1M -Z", "Gbit/s", "%.1f", rates[ours], rates[best], 1, true)
		compare("no more CPU a gigabyte than iperf3 -l 1M -Z", "s/GB", "%.3f", costs[ours], costs[best], 1, false)
	}
}

// cpu is the user and system time of a finished process.
func cpu(c *exec.Cmd) float64 {
	return (c.ProcessState.UserTime() + c.ProcessState.SystemTime()).Seconds()
}

// runPair starts a server, waits for its ready line, runs the client and answers its
// output and both processes' CPU time.
func runPair(t *testing.T, server *exec.Cmd, ready string, client func(line string) *exec.Cmd) ([]byte, float64) {
	t.Helper()
	out, err := server.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	defer time.AfterFunc(time.Minute, func() { server.Process.Kill() }).Stop()
	lines := bufio.NewScanner(out)
	for lines.Scan() && !strings.Contains(lines.Text(), ready) {
	}
	line := lines.Text()
	go func() {
		for lines.Scan() {
		}
		close(ended)
	}()
	c := client(line)
	text, err := c.Output()
	server.Process.Signal(os.Interrupt)
	<-ended
	server.Wait()
	if err != nil {
		t.Fatalf("%v: %v\n%s", c.Args, err, text)
	}
	return text, cpu(c) + cpu(server)
}

func runIperf3(t *testing.T, streams int, options ...string) throughput {
	t.Helper()
	server := exec.Command("iperf3", "-s", "-1", "-p", "5299", "--forceflush")
	text, spent := runPair(t, server, "listening", func(string) *exec.Cmd {
		return exec.Command("iperf3", append([]string{"-c", "127.0.0.1", "-p", "5299", "-J", "-C", "cubic", "-t", strconv.Itoa(throughputSeconds),
			"-P", strconv.Itoa(streams)}, options...)...)
	})
	var doc struct {
		End struct {
			Received struct {
				Bps   float64 `json:"bits_per_second"`
				Bytes float64 `json:"bytes"`
			} `json:"sum_received"`
		} `json:"end"`
	}
	if err := json.Unmarshal(text, &doc); err != nil || doc.End.Received.Bytes == 0 {
		t.Fatalf("iperf3: %v\n%s", err, text)
	}
	return throughput{bps: doc.End.Received.Bps, cpuPerGB: spent / doc.End.Received.Bytes * 1e9}
}

func runFullpipe(t *testing.T, program string, streams int) throughput {
	t.Helper()
	server := exec.Command(program, "serve", "--listen", "127.0.0.1:5298")
	text, spent := runPair(t, server, "key: ", func(line string) *exec.Cmd {
		c := exec.Command(program, "measure", "127.0.0.1:5298", "--json", "-C", "cubic", "-t", strconv.Itoa(throughputSeconds)+"s",
			"-P", strconv.Itoa(streams))
		_, key, _ := strings.Cut(line, "key: ")
		c.Env = append(os.Environ(), "FULLPIPE_KEY="+key)
		return c
	})
	var doc struct {
		Directions []struct {
			Bps   float64 `json:"goodput_bps"`
			Bytes float64 `json:"bytes"`
		} `json:"directions"`
	}
	if err := json.Unmarshal(text, &doc); err != nil || len(doc.Directions) != 1 {
		t.Fatalf("fullpipe: %v\n%s", err, text)
	}
	d := doc.Directions[0]
	return throughput{bps: d.Bps, cpuPerGB: spent / d.Bytes * 1e9}
}

// TestBankSampling bounds what sampling costs by the CPU time of both ends of a transfer
// in which nothing else happens.
func TestBankSampling(t *testing.T) {
	bankOnly(t)
	key := probe.NewKey()
	s, err := server.New(t.Context(), server.Config{Address: "127.0.0.1:0", Key: key})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- s.Serve(ctx) }()
	defer func() { cancel(); <-done }()
	far, err := probe.Connect(ctx, s.Addr().String(), key)
	if err != nil {
		t.Fatal(err)
	}
	defer far.Close()
	spec := transfer.Spec{Direction: transfer.Up, Time: 5 * time.Second, Program: transfer.Program{WriteBps: 1000}}
	var shares []float64
	for range 3 {
		alone(t, func() {
			result, err := far.Run(ctx, spec, nil)
			if err != nil {
				t.Fatal(err)
			}
			shares = append(shares, 100*result.Near.CPU.Process.Seconds()/result.Near.CPU.Wall.Seconds()/2) // the process is both ends
		})
	}
	slices.Sort(shares)
	row := bankRow{Section: "throughput", Case: "sampling", Claim: "under 1 % of a core at each end",
		Measured: fmt.Sprintf("%.2f %% (median of 3, an idle transfer of 5 s, measure's default)", shares[1]), Spread: fmt.Sprintf("%.2f to %.2f %%", shares[0], shares[2]),
		Verdict: "pass", Command: "go test -run TestBankSampling ./e2e"}
	if shares[1] >= 1 {
		row.Verdict = "fail"
	}
	record(t, row)
}
