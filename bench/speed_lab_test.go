//go:build linux

package bench

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/fullpipe-net/fullpipe/e2e/harness"
)

// TestBankSpeedTest runs a browser test through links of up to 300 Mbit/s with a known limiter: FULLPIPE_BANK_TRIALS
// times each (10), FULLPIPE_BANK_CAUSES picks causes.
func TestBankSpeedTest(t *testing.T) {
	bankOnly(t)
	clean := []string{"rate=20mbit,rtt=40ms", "rate=100mbit,rtt=40ms", "rate=100mbit,rtt=10ms"}
	loss := []string{"rate=100mbit,rtt=40ms,loss=0.1%", "rate=100mbit,rtt=80ms,loss=0.1%"}
	fast := []string{"rate=300mbit,rtt=10ms", "rate=300mbit,rtt=40ms"}
	window := func(end string) []string {
		return []string{"rate=20mbit,rtt=80ms," + end + ".stack=windows-xp",
			"rate=100mbit,rtt=40ms," + end + ".stack=windows-xp"}
	}
	for _, c := range []harness.SpeedCase{
		{Name: "download, clean line", Paths: clean, Limiters: []string{"bottleneck"}, MinBps: 14e6, MaxBps: 97e6},
		{Name: "download, loss of 0.1 %", Paths: loss, Limiters: []string{"congestion"}, MinBps: 3e6, MaxBps: 75e6},
		{Name: "download, 64 KiB window of the browser's host", Paths: window("near"), Limiters: []string{"receiver-window"},
			MinBps: 3e6, MaxBps: 15e6},
		{Name: "download, slow device", Paths: fast, CPUShare: 0.1, Limiters: []string{"receiver-application", "cpu"},
			MinBps: 1e6,
			MaxBps: 240e6},
		{Name: "upload, clean line", Paths: clean, Upload: true, Limiters: []string{"bottleneck"}, MinBps: 14e6,
			MaxBps: 97e6},
		{Name: "upload, loss of 0.1 %", Paths: loss, Upload: true, Limiters: []string{"congestion"}, MinBps: 3e6,
			MaxBps: 75e6},
		{Name: "upload, 64 KiB window of the server's host", Paths: window("far"), Upload: true,
			Limiters: []string{"receiver-window"}, MinBps: 3e6, MaxBps: 15e6},
		{Name: "upload, slow device", Paths: fast, Upload: true, CPUShare: 0.1,
			Limiters: []string{"application", "cpu", "send-buffer",
				"sender"}, MinBps: 1e6, MaxBps: 240e6},
	} {
		if strings.Contains(c.Name, os.Getenv("FULLPIPE_BANK_CAUSES")) {
			t.Run(c.Name, func(t *testing.T) { measureSpeedCase(t, &c) })
		}
	}
}

// measureSpeedCase runs a case and records its row.
func measureSpeedCase(t *testing.T, c *harness.SpeedCase) {
	want, err := strconv.Atoi(os.Getenv("FULLPIPE_BANK_TRIALS"))
	if err != nil {
		want = 10
	}
	runs := exact{want: want, crowded: c.CPUShare > 0}
	right, sure := 0, 0
	said := map[string]int{}
	for n := 0; runs.more(); n++ {
		alone(t, func() {
			s := harness.NewSpeedLab(t, c.Paths[n%len(c.Paths)])
			defer s.Close() // and with it all of the browser's processes, before their group
			d, names, _ := c.Judge(t, s.RunTest(t, c.Query(5000), c.CPUShare))
			kept, err := runs.keepLab(s.Lab)
			t.Logf("%s: %.2f Mbit/s, %s, %s %v", c.Paths[n%len(c.Paths)], d.GoodputBps/1e6, d.Limiter, d.Confidence,
				d.Candidates)
			if err != nil || !kept {
				return
			}
			said[d.Limiter+", "+d.Confidence]++
			switch {
			case names && c.CauseActed(d):
				right++
			case !names && d.Confidence == "high":
				sure++
			}
		})
	}
	record(t, runs.into(bankRow{Section: "Test from a browser", Case: c.Name + ": " + strings.Join(c.Paths, " and "),
		Claim:    "names the cause in 9 of 10, never another with high confidence",
		Measured: fmt.Sprintf("%d of %d right, %d wrong with high confidence", right, runs.counted, sure),
		Spread:   counts(said), Verdict: passed(sure == 0 && 10*right >= 9*runs.counted),
		Command: "FULLPIPE_BANK_CAUSES='" + c.Name + "' make bank RUN=TestBankSpeedTest"}))
}

// counts lists the verdicts with their numbers.
func counts(said map[string]int) string {
	var all []string
	for _, one := range slices.Sorted(maps.Keys(said)) {
		all = append(all, fmt.Sprintf("%d × %s", said[one], one))
	}
	return strings.Join(all, "; ")
}
