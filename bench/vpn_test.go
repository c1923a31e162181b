//go:build linux

package bench

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/e2e/harness"
	"github.com/fullpipe-net/fullpipe/internal/lab"
	"github.com/fullpipe-net/fullpipe/internal/link"
	"github.com/fullpipe-net/fullpipe/internal/model"
	"github.com/fullpipe-net/fullpipe/internal/stats"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/verdict/compare"
)

const vpnSection = "VPN overlays"

// near1 reports whether a ratio is 1 to within slack: pass or fail where its interval lies
// on one side, else inconclusive.
func near1(i stats.Interval, slack float64) string {
	switch {
	case math.IsNaN(i.Mid):
		return "inconclusive"
	case i.Low >= 1-slack && i.High <= 1+slack:
		return "pass"
	case i.Low > 1+slack || i.High < 1-slack:
		return "fail"
	}
	return "inconclusive"
}

// TestBankVPN compares the lab's overlays with the protocols' own overhead, and with the results of measure
// --compare. It takes about three minutes.
func TestBankVPN(t *testing.T) {
	bankOnly(t)
	t.Run("wireguard", bankWireGuard)
	t.Run("gateways", bankGateways)
	t.Run("compare", bankCompare)
}

// bankWireGuard compares the goodput of a full link through the tunnel with the link's rate and the sizes of
// WireGuard's packets: the lab does not model the overhead.
func bankWireGuard(t *testing.T) {
	const path, mtu, mss = "rate=20mbit,rtt=10ms,queue=2bdp,vpn=wireguard", 1420,
		1420 - model.IPHeaders - model.TimestampBytes
	want := 20e6 * mss / float64(link.WireGuardBytes(mtu, mtu))
	var ratios []float64
	var busy float64
	runs := exact{want: 4}
	runs.open = func() bool { return near1(stats.Estimate(ratios, 0.95), 0.015) == "inconclusive" }
	for runs.more() {
		var late lab.Lateness
		var r *transfer.Result
		alone(t, func() {
			before := ticks(t)
			var err error
			r, err = harness.RunTransfer(t, harness.LabTransfer{Path: path, Spec: transfer.Spec{Direction: transfer.Up,
				Time: 6 * time.Second},
				Account: &late})
			if err != nil {
				t.Fatal(err)
			}
			busy = max(busy, ticks(t).share(before))
		})
		if startup, ok := r.Startup(); runs.keep(lateness(late)) && ok {
			ratios = append(ratios, startup.SteadyBps/want)
		}
	}
	got := stats.Estimate(ratios, 0.95)
	record(t, runs.into(bankRow{Section: vpnSection, Case: path,
		Claim: fmt.Sprintf("goodput within 1.5 %% of %.2f Mbit/s, the payload of %d bytes on the line", want/1e6,
			link.WireGuardBytes(mtu, mtu)),
		Measured: fmt.Sprintf("%+.2f %%", 100*(got.Mid-1)),
		Spread: fmt.Sprintf("%+.2f to %+.2f %% (95 %%) of %d transfers, machine %.0f %% busy", 100*(got.Low-1),
			100*(got.High-1), len(ratios), 100*busy),
		Verdict: near1(got, 0.015), Command: "fullpipe measure lab:" + path + " --time 6s"}))
}

// bankGateways takes the gateways' throughput in both directions together from the link's own counters, after a start
// of 1.5 s.
func bankGateways(t *testing.T) {
	const path, budget, span = "rate=100mbit,rtt=12ms,vpn=gateway,crypto=30mbit", 30e6, 4 * time.Second
	for _, flags := range [][]string{{}, {"--bidir"}} {
		var ratios []float64
		runs := exact{want: 5}
		runs.open = func() bool { return near1(stats.Estimate(ratios, 0.95), 0.01) == "inconclusive" }
		for runs.more() {
			var through float64
			var late lab.Lateness
			alone(t, func() { through, late = throughBoth(t, path, span, flags...) })
			if runs.keep(lateness(late)) {
				ratios = append(ratios, through/budget)
			}
		}
		got := stats.Estimate(ratios, 0.95)
		name := append([]string{"iperf3 -t 6"}, flags...)
		record(t, runs.into(bankRow{Section: vpnSection, Case: fmt.Sprintf("%s, %v", path, name),
			Claim:    "both directions together, acknowledgements included, within 1 % of 30 Mbit/s",
			Measured: fmt.Sprintf("%+.2f %%", 100*(got.Mid-1)),
			Spread:   fmt.Sprintf("%+.2f to %+.2f %% (95 %%) of %d transfers", 100*(got.Low-1), 100*(got.High-1), len(ratios)),
			Verdict:  near1(got, 0.01),
			Command: fmt.Sprintf("fullpipe lab %s --report r.json --far 'iperf3 -s' -- iperf3 -c $FULLPIPE_FAR -t 6 %v", path,
				flags)}))
	}
}

// throughBoth returns the throughput at both ends together in some seconds of a transfer, in bits a second of the
// hosts' packets.
func throughBoth(t *testing.T, path string, span time.Duration, flags ...string) (bps float64, late lab.Lateness) {
	t.Helper()
	l, _ := harness.StartLab(t, path)
	defer l.Close()
	far, err := l.Far.Start(lab.Command{Args: []string{"iperf3", "-s", "-1"}})
	if err != nil {
		t.Fatal(err)
	}
	l.Far.AwaitListener(t.Context(), far)
	client, err := l.Near.Start(lab.Command{Args: append([]string{"iperf3", "-C", "cubic", "-t", "6", "-c",
		l.Far.Addr.String()}, flags...)})
	if err != nil {
		t.Fatal(err)
	}
	delivered := func() (int64, time.Time) {
		up, down, err := l.Counters()
		if err != nil {
			t.Fatal(err)
		}
		return up.DeliveredBytes + down.DeliveredBytes, time.Now()
	}
	<-time.After(1500 * time.Millisecond)
	before, from := delivered()
	<-time.After(span)
	after, to := delivered()
	if status, err := client.Wait(); err != nil || status != 0 {
		t.Fatalf("iperf3: %d, %v", status, err)
	}
	late, err = l.Lateness()
	if err != nil {
		t.Fatal(err)
	}
	return float64(after-before) * 8 / to.Sub(from).Seconds(), late
}

// bankCompare compares the results of measure --compare with the lab's configuration: gateways with a budget are the
// path's capacity, and a tunnel's own headers are no cause at all.
func bankCompare(t *testing.T) {
	for _, tt := range []struct {
		path   string
		factor float64 // outside over inside, by arithmetic
		want   compare.Cause
	}{
		// The budget counts acknowledgements, one of 52 bytes for every second segment.
		{"rate=20mbit,rtt=12ms,queue=2bdp,vpn=gateway,crypto=8mbit", (20e6 * 1448 / 1500) / (8e6 * 1386 / (1438 + 26)),
			compare.Capacity},
		{"rate=20mbit,rtt=12ms,queue=2bdp,vpn=wireguard", (1448.0 / 1500) / (1368 / 1480.0), compare.NoDifference},
	} {
		var runs exact
		var doc harness.CompareReport
		var busy float64
		factor := func() stats.Interval {
			g := doc.Directions[0].Gain
			return stats.Interval{Low: g.CI95[0] / tt.factor, Mid: g.Factor / tt.factor, High: g.CI95[1] / tt.factor}
		}
		names := func() string {
			d := doc.Directions[0]
			return causeVerdict(d.Cause, d.Candidates, tt.want)
		}
		runs.open = func() bool { return near1(factor(), 0.05) == "inconclusive" || names() == "inconclusive" }
		for runs.more() {
			var one harness.CompareReport
			alone(t, func() {
				before := ticks(t)
				one = harness.CompareVPN(t, tt.path, "--time", "2s")
				busy = ticks(t).share(before)
			})
			if runs.keep(one.Late) || doc.Directions == nil {
				doc = one
			}
		}
		d := doc.Directions[0]
		record(t, runs.into(bankRow{Section: vpnSection, Case: "--compare, " + tt.path,
			Claim:    fmt.Sprintf("the factor within 5 %% of %.3f by arithmetic", tt.factor),
			Measured: fmt.Sprintf("× %.3f", d.Gain.Factor), Spread: fmt.Sprintf("× %.3f to × %.3f (95 %%), machine %.0f %% busy",
				d.Gain.CI95[0], d.Gain.CI95[1], 100*busy),
			Verdict: near1(factor(), 0.05), Command: "fullpipe measure --compare lab:" + tt.path + " --time 2s"}))
		record(t, runs.into(bankRow{Section: vpnSection, Case: "--compare, " + tt.path, Claim: "names " + string(tt.want),
			Measured: fmt.Sprintf("%s %v", d.Cause, d.Candidates), Spread: fmt.Sprintf("hosts %.0f %% busy",
				100*d.First.NearBusy),
			Verdict: names(), Command: "fullpipe measure --compare lab:" + tt.path +
				" --time 2s"}))
	}
}

// causeVerdict returns inconclusive for an open cause, else whether it is the expected one.
func causeVerdict(got compare.Cause, candidates []compare.Cause, want compare.Cause) string {
	open := got == compare.UnknownCause || got == compare.MixedCause && slices.Contains(candidates, want)
	if open {
		return "inconclusive"
	}
	return passed(got == want)
}
