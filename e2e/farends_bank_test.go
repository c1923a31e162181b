//go:build linux

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/iperf3"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

const interop = "Interoperation with iperf3 3.12"

// The matrix of docs/benchmarks.md: each option once in each role, bytes compared.
func TestBankInterop(t *testing.T) {
	bankOnly(t)
	for _, c := range clientCases() {
		var sent, received int64
		ok := t.Run("client "+c.name, func(t *testing.T) { sent, received = c.run(t) })
		record(t, bankRow{Section: interop, Case: "its client, " + c.name, Claim: fmt.Sprintf("runs; both ends count the same bytes within %.0f %%", 100*c.slack),
			Measured: fmt.Sprintf("%d bytes sent, %d received", sent, received), Spread: "1 run", Verdict: verdict(ok), Command: "iperf3 -c HOST " + c.args})
	}
	names := []string{}
	specs := serverSpecs()
	for name := range specs {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		var bytes int64
		ok := t.Run("server "+name, func(t *testing.T) {
			peer := iperf3.NewPeer(realServer(t))
			defer peer.Close()
			result, err := peer.Run(t.Context(), specs[name], nil)
			if err != nil {
				t.Fatal(err)
			}
			span, _ := result.Received()
			if bytes = span.Bytes; bytes < specs[name].Bytes || bytes == 0 {
				t.Errorf("%d bytes", bytes)
			}
			for _, w := range result.Warnings {
				if strings.Contains(w, "acknowledged") {
					t.Error(w)
				}
			}
		})
		record(t, bankRow{Section: interop, Case: "its server, " + name, Claim: "runs; both ends count the same bytes within 2 %",
			Measured: fmt.Sprintf("%d bytes", bytes), Spread: "1 run", Verdict: verdict(ok), Command: "fullpipe measure iperf3://HOST"})
	}
}

// resident is this process's memory in bytes.
func resident(t *testing.T) int64 {
	t.Helper()
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Fatal(err)
	}
	pages, err := strconv.ParseInt(strings.Fields(string(text))[1], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return pages * int64(os.Getpagesize())
}

func descriptors(t *testing.T) int {
	t.Helper()
	all, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(all)
}

// settled waits until goroutines have ended that only need to be scheduled.
func settled(at int) int {
	for deadline := time.Now().Add(15 * time.Second); runtime.NumGoroutine() > at && time.Now().Before(deadline); {
		time.Sleep(20 * time.Millisecond)
	}
	return runtime.NumGoroutine()
}

func TestBankManyTests(t *testing.T) {
	bankOnly(t)
	const tests = 200
	spec := transfer.Spec{Direction: transfer.Up, Time: 5 * time.Second, Program: transfer.Program{WriteBytes: 4096, WriteBps: 500e3}}
	reports := make(chan iperf3.Report, tests)
	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(ourServerFor(t, "127.0.0.1:0", reports, tests)))
	var complete, bytes atomic.Int64
	var running sync.WaitGroup
	for range tests {
		running.Go(func() {
			peer := iperf3.NewPeer(address)
			defer peer.Close()
			result, err := peer.Run(t.Context(), spec, nil)
			if err != nil {
				t.Log(err)
				return
			}
			span, _ := result.Received()
			complete.Add(1)
			bytes.Add(span.Bytes)
		})
	}
	running.Wait()
	want := float64(tests) * 5 * 500e3 / 8
	share := float64(bytes.Load()) / want
	record(t, bankRow{Section: "The server under load", Case: "200 tests at once, 500 kbit/s each", Claim: "all complete, each at its rate",
		Measured: fmt.Sprintf("%d complete, %.1f %% of what was offered arrived", complete.Load(), 100*share), Spread: "1 run",
		Verdict: verdict(complete.Load() == tests && share > 0.97), Command: "client and server in one process"})
}

func TestBankSoak(t *testing.T) {
	bankOnly(t)
	const tests, warm, workers = 10_000, 500, 32
	reports := make(chan iperf3.Report)
	go func() {
		for range reports {
		}
	}()
	port := ourServer(t, "127.0.0.1:0", reports)
	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	failed := atomic.Int64{}
	soak := func(n int) {
		var left atomic.Int64
		left.Store(int64(n))
		var running sync.WaitGroup
		for range workers {
			running.Go(func() {
				peer := iperf3.NewPeer(address)
				defer peer.Close()
				for left.Add(-1) >= 0 {
					if _, err := peer.Run(t.Context(), transfer.Spec{Direction: transfer.Up, Bytes: 8192}, nil); err != nil {
						failed.Add(1)
						t.Log(err)
					}
				}
			})
		}
		running.Wait()
		debug.FreeOSMemory()
	}
	soak(warm)
	goroutines, fds, memory := settled(0), descriptors(t), resident(t)
	started := time.Now()
	soak(tests)
	after := settled(goroutines)
	grown := resident(t) - memory
	ok := failed.Load() == 0 && after <= goroutines && descriptors(t) <= fds && grown < 16<<20
	record(t, bankRow{Section: "The server under load", Case: "10,000 short tests, 32 at a time", Claim: "no failure, no growth of goroutines, descriptors or memory (16 MiB of noise)",
		Measured: fmt.Sprintf("%d failed; goroutines %+d, descriptors %+d, memory %+.1f MiB", failed.Load(), after-goroutines, descriptors(t)-fds, float64(grown)/(1<<20)),
		Spread:   fmt.Sprintf("1 run of %.0f s", time.Since(started).Seconds()), Verdict: verdict(ok), Command: "client and server in one process"})
}

// datagramRun is one UDP run of a client and a server program.
type datagramRun struct {
	received int64
	seconds  float64
	loss     float64
	cpu      time.Duration // both programs'
}

func (r datagramRun) rate() float64 { return float64(r.received) / r.seconds }

// cost is CPU per million datagrams received.
func (r datagramRun) cost() float64 { return r.cpu.Seconds() / float64(r.received) * 1e6 }

func usedBy(cmds ...*exec.Cmd) (sum time.Duration) {
	for _, c := range cmds {
		if c.ProcessState != nil {
			sum += c.ProcessState.UserTime() + c.ProcessState.SystemTime()
		}
	}
	return sum
}

func runDatagrams(t *testing.T, server, client *exec.Cmd, read func([]byte) datagramRun) datagramRun {
	t.Helper()
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	time.Sleep(500 * time.Millisecond) // a fixed pause for both kinds of server
	out, err := client.Output()
	server.Process.Signal(syscall.SIGINT)
	server.Wait()
	if err != nil {
		t.Fatalf("%v: %v: %s", client.Args, err, out)
	}
	r := read(out)
	r.cpu = usedBy(server, client)
	return r
}

func TestBankDatagrams(t *testing.T) {
	bankOnly(t)
	its, ours := needIperf3(t), builtProgram(t)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	const port, seconds = "5391", "5"
	for _, c := range []struct{ name, its, ours string }{
		{"1 Gbit/s of 1448 bytes", "1G", "1gbit"}, {"as fast as it goes, 1448 bytes", "0", "0"},
	} {
		var rates, costs [2][]float64
		var losses [2]float64
		for range 3 {
			theirs := runDatagrams(t, exec.CommandContext(ctx, its, "-s", "-p", port), exec.CommandContext(ctx, its, "-c", "127.0.0.1", "-p", port, "-u", "-b", c.its,
				"-l", "1448", "-t", seconds, "-J"), func(out []byte) datagramRun {
				var doc struct {
					End struct {
						Sum struct {
							Seconds float64
							Packets int64
							Lost    int64 `json:"lost_packets"`
						}
					}
				}
				if err := json.Unmarshal(out, &doc); err != nil {
					t.Fatal(err)
				}
				s := doc.End.Sum
				return datagramRun{received: s.Packets - s.Lost, seconds: s.Seconds, loss: float64(s.Lost) / float64(s.Packets)}
			})
			own := runDatagrams(t, exec.CommandContext(ctx, ours, "serve", "--iperf3", "--quiet", "--listen", "127.0.0.1:"+port),
				exec.CommandContext(ctx, ours, "measure", "iperf3://127.0.0.1:"+port, "--udp", "--rate", c.ours, "-t", seconds+"s", "--json"), func(out []byte) datagramRun {
					var doc struct {
						Directions []struct {
							Received int64   `json:"received_datagrams"`
							Seconds  float64 `json:"duration_s"`
							Loss     float64 `json:"loss_ratio"`
						}
					}
					if err := json.Unmarshal(out, &doc); err != nil || len(doc.Directions) != 1 {
						t.Fatalf("%v: %s", err, out)
					}
					d := doc.Directions[0]
					return datagramRun{received: d.Received, seconds: d.Seconds, loss: d.Loss}
				})
			for i, r := range []datagramRun{theirs, own} {
				rates[i], costs[i] = append(rates[i], r.rate()), append(costs[i], r.cost())
				losses[i] = max(losses[i], r.loss)
			}
		}
		median := func(v []float64) float64 { slices.Sort(v); return v[len(v)/2] }
		a, b := median(rates[0]), median(rates[1])
		ok := b >= 0.99*a && median(costs[1]) <= 1.02*median(costs[0])
		record(t, bankRow{Section: "UDP against iperf3 3.12, loopback", Case: c.name, Claim: "at least iperf3's datagrams a second at no more CPU",
			Measured: fmt.Sprintf("%.0f a second, loss ≤ %.2g %%, %.2f s of CPU a million; iperf3 %.0f, ≤ %.2g %%, %.2f s", b, 100*losses[1], median(costs[1]), a, 100*losses[0], median(costs[0])),
			Spread:   fmt.Sprintf("medians of 3; %.0f to %.0f, iperf3 %.0f to %.0f", rates[1][0], rates[1][2], rates[0][0], rates[0][2]), Verdict: verdict(ok),
			Command: "fullpipe measure iperf3://HOST --udp --rate " + c.ours + "; iperf3 -u -l 1448 -b " + c.its})
	}
}
