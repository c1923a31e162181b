//go:build linux

package harness

import (
	"net"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/iperf3"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// residentBytes returns this process's resident memory.
func residentBytes(t *testing.T) int64 {
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

// openDescriptors returns the number of this process's open file descriptors.
func openDescriptors(t *testing.T) int {
	t.Helper()
	all, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(all)
}

// stableGoroutines waits until the number of goroutines is stable and returns it.
func stableGoroutines() (n int) {
	for same := 0; same < 20; same++ {
		time.Sleep(20 * time.Millisecond)
		if now := runtime.NumGoroutine(); now != n {
			n = now
			same = 0
		}
	}
	return n
}

// awaitGoroutines waits up to 15 s until at most that many goroutines are left and returns their number.
func awaitGoroutines(at int) int {
	for deadline := time.Now().Add(15 * time.Second); runtime.NumGoroutine() > at && time.Now().Before(deadline); {
		time.Sleep(20 * time.Millisecond)
	}
	return runtime.NumGoroutine()
}

// RunParallelTests runs tests at the same time on one iperf3-compatible server, each paced to a rate, and returns
// how many completed and their bytes.
func RunParallelTests(t *testing.T, tests int, bps float64, length time.Duration) (complete, bytes int64) {
	t.Helper()
	spec := transfer.Spec{Direction: transfer.Up, Time: length, Program: transfer.Program{WriteBytes: 4096, WriteBps: bps}}
	reports := make(chan iperf3.Report, tests)
	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(serveIperf3Limit(t, "127.0.0.1:0", reports, tests)))
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

// Growth is what a Soak left behind, and how many tests failed.
type Growth struct {
	Failed                  int64
	Goroutines, Descriptors int
	Memory                  int64 // bytes
}

// Soak runs short tests on one server, 16 at a time, and returns by how much the process has grown since the
// warm-up.
func Soak(t *testing.T, warm, tests int) (g Growth) {
	t.Helper()
	const workers = 16
	reports := make(chan iperf3.Report, warm+tests)
	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(ServeIperf3(t, "127.0.0.1:0", reports)))
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
						continue
					}
					<-reports // the server frees a test's slot before it reports the test
				}
			})
		}
		running.Wait()
		debug.FreeOSMemory()
	}
	run(warm)
	goroutines := stableGoroutines()
	fds := openDescriptors(t)
	memory := residentBytes(t)
	run(tests)
	return Growth{failed.Load(), awaitGoroutines(goroutines) - goroutines, openDescriptors(t) - fds,
		residentBytes(t) - memory}
}
