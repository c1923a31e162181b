//go:build linux

package bench

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/e2e/harness"
	"github.com/fullpipe-net/fullpipe/internal/lab"
	"github.com/fullpipe-net/fullpipe/internal/stats"
)

// TestBankWebStrangers attacks a speed test's server with 1,000 hostile clients, from its own host and on half a
// processor together, in every other run of a client that comes over 100 Mbit/s. It takes four minutes.
func TestBankWebStrangers(t *testing.T) {
	bankOnly(t)
	const pairs = 14
	attack := fmt.Sprintf("echo 0 > %s; exec %s web-clients 127.0.0.1:%s 1000", slowedTo(t, 0.5).ProcsFile(),
		harness.HostileProgram(t), harness.SpeedPort)
	measured := func(s *harness.SpeedLab) float64 {
		var out, problems bytes.Buffer
		status, err := s.Near.Run(lab.Command{Args: []string{harness.Program(t), "measure", "ndt7://" +
			lab.FarAddr.String() + ":" + harness.SpeedPort, "-d", "down", "-t", "4s", "--json", "--no-history"}, Stdout: &out,
			Stderr: &problems})
		var doc struct{ Directions []harness.MeasuredTransfer }
		if jerr := json.Unmarshal(out.Bytes(), &doc); err != nil || status != 0 || jerr != nil || len(doc.Directions) != 1 {
			t.Fatalf("status %d, %v, %v: %s%s", status, err, jerr, out.String(), problems.String())
		}
		return doc.Directions[0].GoodputBps
	}
	came := 0 // connections that the hostile clients made
	besieged := func(s *harness.SpeedLab) float64 {
		var out bytes.Buffer
		crowd, err := s.Far.Start(lab.Command{Args: []string{"sh", "-euc", attack}, Stdout: &out, Stderr: os.Stderr})
		if err != nil {
			t.Fatal(err)
		}
		<-time.After(time.Second) // they are there
		bps := measured(s)
		if err := crowd.Signal(os.Interrupt); err != nil {
			t.Fatal(err)
		}
		made := 0
		if status, err := crowd.Wait(); err != nil || status != 0 {
			t.Fatalf("the hostile clients: status %d, %v: %s", status, err, out.String())
		}
		if _, err := fmt.Sscan(out.String(), &made); err != nil || made < 1000 {
			t.Fatalf("the hostile clients made %d connections: %v", made, err)
		}
		came += made
		return bps
	}
	var with, without []float64
	runs := exact{want: pairs, crowded: true}
	for runs.more() {
		alone(t, func() {
			s := harness.NewSpeedLab(t, "rate=100mbit,rtt=20ms,queue=2bdp")
			defer s.Close() // with all that is in the group
			var a, b float64
			if runs.counted%2 == 0 {
				a = besieged(s)
				b = measured(s)
			} else {
				b = measured(s)
				a = besieged(s)
			}
			t.Logf("%.2f Mbit/s with them, %.2f without", a/1e6, b/1e6)
			if kept, err := runs.keepLab(s.Lab); kept && err == nil {
				with, without = append(with, a), append(without, b)
			}
		})
	}
	gain := stats.Gain(without, with, 0.95)
	record(t, runs.into(bankRow{Section: "Hostile far ends", Case: "1,000 hostile clients of serve --web on half a " +
		"processor", Claim: "a test loses 2 % at most, in pairs with and without", Measured: fmt.Sprintf("%+.2f %% (%.4g "+
		"against %.4g Mbit/s)", 100*(gain.Mid-1), stats.Median(with)/1e6, stats.Median(without)/1e6),
		Spread: fmt.Sprintf("%+.2f to %+.2f %% (95 %%, %d pairs), %d hostile connections", 100*(gain.Low-1),
			100*(gain.High-1), len(with), came),
		Verdict: byInterval(gain.Low > 0.98, gain.Low > 0.98 || gain.High <= 0.98),
		Command: "make bank RUN=TestBankWebStrangers"}))
}
