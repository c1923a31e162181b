//go:build linux

package bench

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/e2e/harness"
	"github.com/fullpipe-net/fullpipe/internal/iperf3"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

const interop = "Interoperation with iperf3 3.12"

// The matrix of docs/benchmarks.md: each option once in each role, bytes compared.
func TestBankInterop(t *testing.T) {
	bankOnly(t)
	for _, c := range harness.Iperf3ClientCases() {
		var sent, received int64
		ok := t.Run("client "+c.Name, func(t *testing.T) { sent, received = c.Run(t) })
		record(t, bankRow{Section: interop, Case: "its client, " + c.Name,
			Claim:    fmt.Sprintf("runs; both ends count the same bytes within %.0f %%", 100*c.Slack),
			Measured: fmt.Sprintf("%d bytes sent, %d received", sent, received), Spread: "1 run", Verdict: passed(ok),
			Command: "iperf3 -c HOST " + c.Args})
	}
	names := []string{}
	specs := harness.Iperf3ServerSpecs()
	for name := range specs {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		var bytes int64
		ok := t.Run("server "+name, func(t *testing.T) {
			peer := iperf3.NewPeer(harness.StartIperf3Server(t))
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

func TestBankManyTests(t *testing.T) {
	bankOnly(t)
	const tests = 200
	const bps, length = 500e3, 5 * time.Second
	complete, bytes := harness.RunParallelTests(t, tests, bps, length)
	share := float64(bytes) / (tests * length.Seconds() * bps / 8)
	record(t, bankRow{Section: "The server under load", Case: "200 tests at once, 500 kbit/s each",
		Claim:    "all complete, each at its rate",
		Measured: fmt.Sprintf("%d complete, %.1f %% of what was offered arrived", complete, 100*share), Spread: "1 run",
		Verdict: passed(complete == tests && share > 0.97), Command: "client and server in one process"})
}

func TestBankSoak(t *testing.T) {
	bankOnly(t)
	started := time.Now()
	g := harness.Soak(t, 500, 10_000)
	ok := g.Failed == 0 && g.Goroutines <= 0 && g.Descriptors <= 0 && g.Memory < 16<<20
	record(t, bankRow{Section: "The server under load", Case: "10,000 short tests, 16 at a time",
		Claim: "no failure, no growth of goroutines, descriptors or memory (16 MiB of noise)",
		Measured: fmt.Sprintf("%d failed; goroutines %+d, descriptors %+d, memory %+.1f MiB", g.Failed, g.Goroutines,
			g.Descriptors, float64(g.Memory)/(1<<20)),
		Spread: fmt.Sprintf("1 run of %.0f s", time.Since(started).Seconds()), Verdict: passed(ok),
		Command: "client and server in one process"})
}
