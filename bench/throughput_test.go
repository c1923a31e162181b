//go:build linux

package bench

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/probe"
	"github.com/fullpipe-net/fullpipe/internal/server"
	"github.com/fullpipe-net/fullpipe/internal/stats"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// throughput is the result of one run over loopback: the goodput at the receiver, the CPU time used, and the
// congestion control.
type throughput struct {
	bps        float64
	cpuPerGB   float64 // seconds of both processes, user and system, for 1e9 bytes
	congestion string
}

const throughputSeconds = 2

// iperf3Write is the default size of iperf3's writes on TCP.
const iperf3Write = "128KiB"

// iperf3Program is the iperf3 to compare with: $IPERF3, such as a newer one than the system's package.
func iperf3Program() string { return cmp.Or(os.Getenv("IPERF3"), "iperf3") }

// iperf3Version returns "iperf 3.21".
func iperf3Version(t *testing.T) string {
	t.Helper()
	out, err := exec.Command(iperf3Program(), "--version").Output()
	words := strings.Fields(string(out))
	if err != nil || len(words) < 2 {
		t.Fatalf("%s --version: %v: %s", iperf3Program(), err, out)
	}
	return words[0] + " " + words[1]
}

// TestBankThroughput compares with iperf3 on loopback, by the same writes and by the best
// that either can do: runs in turn, each round the other way round, cubic.
func TestBankThroughput(t *testing.T) {
	bankOnly(t)
	program := filepath.Join(t.TempDir(), "fullpipe")
	build := exec.Command("go", "build", "-o", program, "./cmd/fullpipe")
	build.Dir = ".."
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	theirs := iperf3Version(t)
	help, _ := exec.Command(iperf3Program(), "--help").CombinedOutput()
	for _, streams := range []int{1, 2, 8} {
		for _, c := range []struct {
			against string
			theirs  []string // iperf3's flags
			ours    []string
		}{
			{"by writes of " + iperf3Write + ", copied", nil, []string{"--write-size", iperf3Write, "--copy-data"}},
			{"--skip-rx-copy, by the same writes", []string{"--skip-rx-copy"}, []string{"--write-size", iperf3Write}},
			{"-l 1M -Z", []string{"-l", "1M", "-Z"}, nil},
			{"-l 1M -Z --skip-rx-copy", []string{"-l", "1M", "-Z", "--skip-rx-copy"}, nil},
		} {
			if slices.Contains(c.theirs, "--skip-rx-copy") && !strings.Contains(string(help), "--skip-rx-copy") {
				continue // before iperf3 3.19
			}
			t.Run(fmt.Sprintf("%d/%s", streams, c.against), func(t *testing.T) {
				bankThroughput(t, program, streams, strings.TrimSpace(theirs+" "+c.against), c.theirs, c.ours)
			})
		}
	}
}

func bankThroughput(t *testing.T, program string, streams int, against string, theirFlags, ourFlags []string) {
	var ours, theirs []throughput
	each := func(runs []throughput, of func(throughput) float64) (all []float64) {
		for _, r := range runs {
			all = append(all, of(r))
		}
		return all
	}
	judge := func(of func(throughput) float64, atLeast bool) (ratio stats.Interval, verdict string) {
		ratio = stats.Gain(each(theirs, of), each(ours, of), 0.95)
		if atLeast {
			return ratio, byInterval(ratio.Mid >= 1, ratio.Low >= 1 || ratio.High < 1)
		}
		return ratio, byInterval(ratio.Mid <= 1, ratio.High <= 1 || ratio.Low > 1)
	}
	goodput := func(r throughput) float64 { return r.bps / 1e9 }
	cost := func(r throughput) float64 { return r.cpuPerGB }
	runs := exact{want: 8, crowded: true, open: func() bool {
		_, more := judge(goodput, true)
		_, less := judge(cost, false)
		return more == "inconclusive" || less == "inconclusive"
	}}
	for runs.more() {
		alone(t, func() {
			tools := []func(){
				func() { theirs = append(theirs, runIperf3(t, streams, theirFlags...)) },
				func() { ours = append(ours, runFullpipe(t, program, streams, ourFlags...)) },
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
	row := func(claim string, of func(throughput) float64, format string, atLeast bool) {
		ratio, verdict := judge(of, atLeast)
		record(t, bankRow{Section: "throughput", Case: fmt.Sprintf("loopback, %d stream(s), against %s", streams, against),
			Claim: claim,
			Measured: fmt.Sprintf("× %.3f (%s)", ratio.Mid,
				fmt.Sprintf(format, median(each(ours, of)), median(each(theirs, of)))),
			Spread: fmt.Sprintf("× %.3f to × %.3f (95 %%) of %d pairs; %s and %s, MTU %s, both ends share %d cores", ratio.Low,
				ratio.High, len(ours),
				ours[0].congestion, theirs[0].congestion, loopbackMTU(), runtime.NumCPU()),
			Verdict: verdict,
			Command: fmt.Sprintf("fullpipe measure 127.0.0.1 -t %ds -C cubic -P %d %s; iperf3 -c 127.0.0.1 -t %d -C cubic -P "+
				"%d %s", throughputSeconds,
				streams, strings.Join(ourFlags, " "), throughputSeconds, streams, strings.Join(theirFlags, " "))})
	}
	row("at least 1.0 × its goodput", goodput, "%.1f against %.1f Gbit/s", true)
	row("no more CPU a gigabyte", cost, "%.3f against %.3f s", false)
}

func loopbackMTU() string {
	mtu, err := os.ReadFile("/sys/class/net/lo/mtu")
	if err != nil {
		return "not known"
	}
	return strings.TrimSpace(string(mtu))
}

// cpu is the user and system time of a finished process.
func cpu(c *exec.Cmd) float64 {
	return (c.ProcessState.UserTime() + c.ProcessState.SystemTime()).Seconds()
}

// runPair starts a server, waits for its ready line and runs the client. It returns the client's output and the CPU
// time of both processes.
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
	server := exec.Command(iperf3Program(), "-s", "-1", "-p", "5299", "--forceflush")
	text, spent := runPair(t, server, "listening", func(string) *exec.Cmd {
		return exec.Command(iperf3Program(), append([]string{"-c", "127.0.0.1", "-p", "5299", "-J", "-C", "cubic", "-t",
			strconv.Itoa(throughputSeconds),
			"-P", strconv.Itoa(streams)}, options...)...)
	})
	var doc struct {
		End struct {
			Congestion string `json:"sender_tcp_congestion"`
			Received   struct {
				Bps   float64 `json:"bits_per_second"`
				Bytes float64 `json:"bytes"`
			} `json:"sum_received"`
		} `json:"end"`
	}
	if err := json.Unmarshal(text, &doc); err != nil || doc.End.Received.Bytes == 0 {
		t.Fatalf("iperf3: %v\n%s", err, text)
	}
	return throughput{bps: doc.End.Received.Bps, cpuPerGB: spent / doc.End.Received.Bytes * 1e9,
		congestion: doc.End.Congestion}
}

func runFullpipe(t *testing.T, program string, streams int, options ...string) throughput {
	t.Helper()
	server := exec.Command(program, "serve", "--listen", "127.0.0.1:5298")
	text, spent := runPair(t, server, "key: ", func(line string) *exec.Cmd {
		c := exec.Command(program, append([]string{"measure", "127.0.0.1:5298", "--json", "-C", "cubic", "-t",
			strconv.Itoa(throughputSeconds) + "s",
			"-P", strconv.Itoa(streams)}, options...)...)
		_, key, _ := strings.Cut(line, "key: ")
		c.Env = append(os.Environ(), "FULLPIPE_KEY="+key)
		return c
	})
	var doc struct {
		Near struct {
			Congestion string `json:"congestion"`
		}
		Directions []struct {
			Bps   float64 `json:"goodput_bps"`
			Bytes float64 `json:"bytes"`
		} `json:"directions"`
	}
	if err := json.Unmarshal(text, &doc); err != nil || len(doc.Directions) != 1 {
		t.Fatalf("fullpipe: %v\n%s", err, text)
	}
	d := doc.Directions[0]
	return throughput{bps: d.Bps, cpuPerGB: spent / d.Bytes * 1e9, congestion: doc.Near.Congestion}
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
			result, err := transfer.Run(ctx, far, spec, nil)
			if err != nil {
				t.Fatal(err)
			}
			// the process is both ends
			shares = append(shares, 100*result.Near.CPU.Process.Seconds()/result.Near.CPU.Wall.Seconds()/2)
		})
	}
	slices.Sort(shares)
	row := bankRow{Section: "throughput", Case: "sampling", Claim: "under 1 % of a core at each end",
		Measured: fmt.Sprintf("%.2f %% (median of 3, an idle transfer of 5 s, measure's default)", shares[1]),
		Spread:   fmt.Sprintf("%.2f to %.2f %%", shares[0], shares[2]),
		Verdict:  "pass", Command: "make bank RUN=TestBankSampling"}
	if shares[1] >= 1 {
		row.Verdict = "fail"
	}
	record(t, row)
}
