//go:build linux

package bench

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/fullpipe-net/fullpipe/e2e/harness"
	"github.com/fullpipe-net/fullpipe/internal/link"
	"github.com/fullpipe-net/fullpipe/internal/model"
)

type rfc6349Case struct {
	profile string
	flags   []string
	verdict string
	loss    float64
	shaped  bool // TCP's own rate is not known beforehand
}

// TestBankRFC6349 compares the standard's metrics with paths of known truth: the link's rate, its round trip, and the
// queue that a window fills. It takes about 4 minutes.
func TestBankRFC6349(t *testing.T) {
	bankOnly(t)
	for _, c := range []rfc6349Case{
		{"rate=100mbit,rtt=20ms", []string{"--cir", "100mbit"}, "pass", 0, false},
		{"rate=50mbit,rtt=40ms,overhead=38", []string{"--cir", "50mbit", "--overhead", "38"}, "pass", 0, false},
		{"rate=40mbit,rtt=30ms", []string{"--cir", "50mbit"}, "fail", 0, false},
		{"rate=100mbit,rtt=20ms,police=40mbit/200kB", []string{"--cir", "50mbit"}, "fail", 0, true},
		{"rate=20mbit,rtt=30ms,loss=1%", []string{"--cir", "20mbit"}, "fail", 0.01, true},
	} {
		t.Run(c.profile, func(t *testing.T) {
			flags := append([]string{"--direction", "up", "--budget", "45s"}, c.flags...)
			var docs []harness.RFC6349Report
			var runs exact
			rows := func() []bankRow { return rfc6349Rows(t, c, docs, flags) }
			runs.open = func() bool {
				return slices.ContainsFunc(rows(), func(r bankRow) bool { return r.Verdict == "inconclusive" })
			}
			for runs.more() {
				var doc harness.RFC6349Report
				alone(t, func() { doc, _ = harness.RunRFC6349(t, harness.RFC6349Command(t, c.profile, flags...)) })
				if runs.keep(doc.Late) {
					docs = append(docs, doc)
				}
			}
			if len(docs) == 0 {
				t.Fatal("no run of an exact lab")
			}
			for _, r := range rows() {
				record(t, runs.into(r))
			}
		})
	}
}

// rfc6349Rows judges the last document, and the retransmissions of all of them.
func rfc6349Rows(t *testing.T, c rfc6349Case, docs []harness.RFC6349Report, flags []string) (all []bankRow) {
	t.Helper()
	row := func(claim, measured, spread, verdict string) {
		all = append(all, bankRow{Section: "rfc6349", Case: c.profile, Claim: claim, Measured: measured, Spread: spread,
			Verdict: verdict, Command: "fullpipe rfc6349 lab:" + c.profile + " " + strings.Join(flags, " ")})
	}
	doc := docs[len(docs)-1]
	made, err := link.Parse(c.profile)
	if err != nil || len(doc.Directions) != 1 {
		t.Fatalf("%v, %+v", err, doc)
	}
	d := doc.Directions[0]
	packet := float64(doc.Path.MSS + 52)
	line := float64(made.Up.Rate) * packet / (packet + float64(made.Up.Overhead))
	if made.Up.PoliceRate > 0 {
		line = float64(made.Up.PoliceRate)
	}
	within := func(got, want, share float64) bool { return math.Abs(got-want) <= share*want }
	row("bottleneck within 2 % of the link's", fmt.Sprintf("%.3f of %.3f Mbit/s", d.Bottleneck.Bps/1e6,
		line*(1-c.loss)/1e6),
		fmt.Sprintf("%.3f to %.3f", d.Bottleneck.Range[0]/1e6, d.Bottleneck.Range[1]/1e6),
		byInterval(within(d.Bottleneck.Bps, line*(1-c.loss), 0.02), !d.Bottleneck.AtLeast))
	row("idle round trip within 1 ms of the link's", fmt.Sprintf("%.2f ms", 1e3*doc.Path.RTT), "",
		byInterval(math.Abs(doc.Path.RTT-made.RTT.Seconds()) < 1e-3, true))
	reasons := ""
	for _, one := range d.Criteria {
		reasons += fmt.Sprintf("%s %s; ", one.Name, one.Verdict)
	}
	row("sign-off: "+c.verdict, doc.Verdict, strings.TrimSuffix(reasons, "; "), byInterval(doc.Verdict == c.verdict,
		doc.Verdict != "inconclusive"))
	find := func(kind string, share float64) *harness.RFC6349Test {
		i := slices.IndexFunc(d.Tests, func(one harness.RFC6349Test) bool {
			return one.Kind == kind && one.Share >= share &&
				len(one.Runs) > 0
		})
		if i < 0 {
			return nil
		}
		return &d.Tests[i]
	}
	most := model.Goodput(line, doc.Path.MSS, 52)
	if single := find("single", 0); single != nil && !c.shaped {
		low, high := single.CI95[0]/most, single.CI95[1]/most
		row("settled transfer time ratio, one connection, within 2 % of 1 against the link's truth",
			fmt.Sprintf("%.4f", most/single.Goodput),
			fmt.Sprintf("%.4f to %.4f", 1/high, 1/low), byInterval(low >= 0.98 && high <= 1.02, low >= 0.98 && high <= 1.02 ||
				high < 0.98 || low > 1.02))
	}
	if rung := find("window", 1.4); rung != nil && !c.shaped && rung.Runs[0].Delay != nil {
		truth := float64(rung.Window)*8/most/made.RTT.Seconds() - 1
		row(fmt.Sprintf("buffer delay of a window of %.0f %% of the BDP within 5 points of what stands in the queue",
			100*rung.Share),
			fmt.Sprintf("%.1f %% of %.1f %%", 100**rung.Runs[0].Delay, 100*truth), "",
			byInterval(math.Abs(*rung.Runs[0].Delay-truth) < 0.05, true))
	}
	if c.loss > 0 {
		var sent, again float64
		for _, doc := range docs {
			for _, one := range doc.Directions[0].Tests {
				for _, run := range one.Runs {
					if run.Efficiency != nil {
						sent += float64(run.Sent)
						again += float64(run.Sent) * (1 - *run.Efficiency)
					}
				}
			}
		}
		share, n := again/sent, sent/float64(doc.Path.MSS)
		half := 1.96 * math.Sqrt(share*(1-share)/n)
		row("TCP Efficiency of all runs within 0.3 points of the link's loss",
			fmt.Sprintf("%.2f %% retransmitted at %.2g %% of loss", 100*share, 100*c.loss),
			fmt.Sprintf("± %.2f", 100*half), byInterval(math.Abs(share-c.loss) <= 0.003,
				math.Abs(math.Abs(share-c.loss)-0.003) > half))
	}
	return all
}
