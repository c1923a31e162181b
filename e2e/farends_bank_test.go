//go:build linux

package e2e

import (
	"fmt"
	"net"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
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
		record(t, bankRow{Section: interop, Case: "its client, " + c.name,
			Claim:    fmt.Sprintf("runs; both ends count the same bytes within %.0f %%", 100*c.slack),
			Measured: fmt.Sprintf("%d bytes sent, %d received", sent, received), Spread: "1 run", Verdict: passed(ok),
			Command: "iperf3 -c HOST " + c.args})
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
			result, err := transfer.Run(t.Context(), peer, specs[name], nil)
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
		record(t, bankRow{Section: interop, Case: "its server, " + name,
			Claim:    "runs; both ends count the same bytes within 2 %",
			Measured: fmt.Sprintf("%d bytes", bytes), Spread: "1 run", Verdict: passed(ok),
			Command: "fullpipe measure iperf3://HOST"})
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

// steady waits until the number of goroutines has not changed for a while.
func steady() (n int) {
	for same := 0; same < 20; same++ {
		time.Sleep(20 * time.Millisecond)
		if now := runtime.NumGoroutine(); now != n {
			n, same = now, 0
		}
	}
	return n
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
	const bps, length = 500e3, 5 * time.Second
	complete, bytes := manyTests(t, tests, bps, length)
	share := float64(bytes) / (tests * length.Seconds() * bps / 8)
	record(t, bankRow{Section: "The server under load", Case: "200 tests at once, 500 kbit/s each",
		Claim:    "all complete, each at its rate",
		Measured: fmt.Sprintf("%d complete, %.1f %% of what was offered arrived", complete, 100*share), Spread: "1 run",
		Verdict: passed(complete == tests && share > 0.97), Command: "client and server in one process"})
}

// manyTests runs tests at once on one server.
func manyTests(t *testing.T, tests int, bps float64, length time.Duration) (complete, bytes int64) {
	t.Helper()
	spec := transfer.Spec{Direction: transfer.Up, Time: length, Program: transfer.Program{WriteBytes: 4096, WriteBps: bps}}
	reports := make(chan iperf3.Report, tests)
	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(ourServerFor(t, "127.0.0.1:0", reports, tests)))
	var done, moved atomic.Int64
	var running sync.WaitGroup
	for range tests {
		running.Go(func() {
			peer := iperf3.NewPeer(address)
			defer peer.Close()
			result, err := transfer.Run(t.Context(), peer, spec, nil)
			if err != nil {
				t.Log(err)
				return
			}
			span, _ := result.Received()
			done.Add(1)
			moved.Add(span.Bytes)
		})
	}
	running.Wait()
	return done.Load(), moved.Load()
}

func TestManyTestsAtOnce(t *testing.T) {
	if complete, bytes := manyTests(t, 100, 100e3, time.Second); complete != 100 || bytes == 0 {
		t.Errorf("%d of 100 tests completed, %d bytes", complete, bytes)
	}
}

func TestBankSoak(t *testing.T) {
	bankOnly(t)
	started := time.Now()
	g := soak(t, 500, 10_000)
	ok := g.failed == 0 && g.goroutines <= 0 && g.descriptors <= 0 && g.memory < 16<<20
	record(t, bankRow{Section: "The server under load", Case: "10,000 short tests, 24 at a time",
		Claim: "no failure, no growth of goroutines, descriptors or memory (16 MiB of noise)",
		Measured: fmt.Sprintf("%d failed; goroutines %+d, descriptors %+d, memory %+.1f MiB", g.failed, g.goroutines,
			g.descriptors, float64(g.memory)/(1<<20)),
		Spread: fmt.Sprintf("1 run of %.0f s", time.Since(started).Seconds()), Verdict: passed(ok),
		Command: "client and server in one process"})
}

func TestShortSoak(t *testing.T) {
	if g := soak(t, 50, 300); g.failed > 0 || g.goroutines > 0 || g.descriptors > 0 {
		t.Errorf("after 300 tests: %+v", g)
	}
}

// growth is what tests left behind, beside those that failed.
type growth struct {
	failed                  int64
	goroutines, descriptors int
	memory                  int64 // bytes
}

// soak runs short tests one after the other on one server, 24 at a time, and answers how
// it has grown since the first of them, which warm it up.
func soak(t *testing.T, warm, tests int) (g growth) {
	t.Helper()
	const workers = 24 // one host has a quarter of the server's 128 places, and a place is free a moment after its test
	reports := make(chan iperf3.Report)
	t.Cleanup(func() { close(reports) }) // after the server's end
	go func() {
		for range reports {
		}
	}()
	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(ourServer(t, "127.0.0.1:0", reports)))
	failed := atomic.Int64{}
	run := func(n int) {
		var left atomic.Int64
		left.Store(int64(n))
		var running sync.WaitGroup
		for range workers {
			running.Go(func() {
				peer := iperf3.NewPeer(address)
				defer peer.Close()
				for left.Add(-1) >= 0 {
					if _, err := transfer.Run(t.Context(), peer, transfer.Spec{Direction: transfer.Up, Bytes: 8192}, nil); err != nil {
						failed.Add(1)
						t.Log(err)
					}
				}
			})
		}
		running.Wait()
		debug.FreeOSMemory()
	}
	run(warm)
	goroutines, fds, memory := steady(), descriptors(t), resident(t)
	run(tests)
	return growth{failed.Load(), settled(goroutines) - goroutines, descriptors(t) - fds, resident(t) - memory}
}
