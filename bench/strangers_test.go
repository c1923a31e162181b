//go:build linux

package bench

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/fullpipe-net/fullpipe/e2e/harness"
	"github.com/fullpipe-net/fullpipe/internal/lab"
	"github.com/fullpipe-net/fullpipe/internal/probe"
	"github.com/fullpipe-net/fullpipe/internal/stats"
)

// TestBankStrangers compares the goodput of a test alone with its goodput while a thousand strangers connect from the
// server's own host, so that the test has the link to itself. It takes about five minutes.
func TestBankStrangers(t *testing.T) {
	bankOnly(t)
	for _, c := range []struct {
		path string
		args []string
	}{
		{"rate=100mbit,rtt=20ms,queue=2bdp", []string{"-d", "up"}},
		{"rate=100mbit,rtt=20ms,queue=2bdp", []string{"-d", "down"}},
		{"rate=20mbit,rtt=20ms,queue=2bdp", []string{"-d", "up"}},
		{"rate=unlimited,rtt=0ms", []string{"-d", "up", "--write-rate", "1gbit"}},
	} {
		var without, with []float64
		made := 0
		gain := func() stats.Interval { return stats.Gain(without, with, 0.95) }
		verdict := func() string {
			g := gain()
			return byInterval(g.Low > 0.98, g.Low > 0.98 || g.High <= 0.98)
		}
		runs := exact{want: 8, crowded: true, open: func() bool { return verdict() == "inconclusive" }}
		for runs.more() {
			var bps [2]float64 // without strangers, with them
			var late [2]lab.Lateness
			alone(t, func() {
				for turn := range 2 {
					i := (turn + runs.counted) % 2
					var n int
					bps[i], n, late[i] = goodputAmong(t, c.path, i == 1, c.args)
					made = max(made, n)
				}
			})
			if runs.keep(lateness(late[0], late[1])) {
				without, with = append(without, bps[0]), append(with, bps[1])
			}
		}
		if runs.counted == 0 {
			t.Fatal("no run of exact labs")
		}
		g := gain()
		row := runs.into(bankRow{Section: "The server under load",
			Case:  "strangers, " + c.path + " " + strings.Join(c.args, " "),
			Claim: "a running test loses less than 2 % while 1,000 hostile clients come and go",
			Measured: fmt.Sprintf("%+.2f %% (%.4g against %.4g Mbit/s), %d strangers a run", 100*(g.Mid-1),
				stats.Median(with)/1e6, stats.Median(without)/1e6, made),
			Spread:  fmt.Sprintf("%+.2f to %+.2f %% (95 %%, %d pairs)", 100*(g.Low-1), 100*(g.High-1), len(with)),
			Verdict: verdict(),
			Command: "fullpipe measure PEER -t 4s " + strings.Join(c.args, " ") + " in a lab; strangers on the far host"})
		record(t, row)
	}
}

// goodputAmong measures for four seconds, with strangers at the far host or without.
func goodputAmong(t *testing.T, path string, hostile bool, args []string) (bps float64, made int, late lab.Lateness) {
	t.Helper()
	l, _ := harness.StartLab(t, path)
	defer l.Close()
	program := harness.Program(t)
	key := "FULLPIPE_KEY=" + probe.NewKey().String()
	far, err := l.Far.Start(lab.Command{Args: []string{program, "serve", "--iperf3", "--quiet"}, Env: []string{key},
		Stderr: os.Stderr})
	if err != nil {
		t.Fatal(err)
	}
	l.Far.AwaitListener(t.Context(), far)
	var out, problems, count bytes.Buffer
	near, err := l.Near.Start(lab.Command{Args: append([]string{program, "measure", "fullpipe://" + lab.FarAddr.String(),
		"--json", "-t", "4s"}, args...),
		Env: []string{key}, Stdout: &out, Stderr: &problems})
	if err != nil {
		t.Fatal(err)
	}
	if hostile {
		crowd, err := l.Far.Start(lab.Command{Args: []string{harness.HostileProgram(t), "strangers", "127.0.0.1:5201", "1000",
			"100",
			"300ms"},
			Stdout: &count, Stderr: os.Stderr})
		if err != nil {
			t.Fatal(err)
		}
		if status, err := crowd.Wait(); err != nil || status != 0 {
			t.Fatalf("strangers: status %d, %v", status, err)
		}
		fmt.Sscan(count.String(), &made)
	}
	if status, err := near.Wait(); err != nil || status != 0 {
		t.Fatalf("measure: status %d, %v: %s%s", status, err, out.String(), problems.String())
	}
	var doc struct{ Directions []harness.MeasuredTransfer }
	if err := json.Unmarshal(out.Bytes(), &doc); err != nil || len(doc.Directions) != 1 {
		t.Fatalf("%v: %s", err, out.String())
	}
	late, err = l.Lateness()
	if err != nil {
		t.Fatal(err)
	}
	return doc.Directions[0].GoodputBps, made, late
}
