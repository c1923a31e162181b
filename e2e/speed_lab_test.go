//go:build linux

package e2e

import (
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/lab"
)

// speedLab is a lab with `fullpipe serve --web` at its far end; the browser is at the near one.
type speedLab struct {
	*lab.Lab
	events chan browserResult
}

const speedPort = "8080"

func newSpeedLab(t *testing.T, path string) *speedLab {
	t.Helper()
	l, _ := bench(t, path)
	s := &speedLab{l, make(chan browserResult, 4)}
	read, write := io.Pipe()
	_, err := l.Far.Start(lab.Command{Args: []string{fullpipeProgram(t), "serve", "--web", ":" + speedPort, "--json"},
		Stdout: write, Stderr: os.Stderr})
	if err != nil {
		t.Fatal(err)
	}
	go webEvents(read, func(one browserResult) { s.events <- one })
	s.next(t) // it is ready
	return s
}

func (s *speedLab) next(t *testing.T) browserResult {
	t.Helper()
	select {
	case one := <-s.events:
		return one
	case <-time.After(2 * time.Minute):
		t.Fatal("the browser came to no result")
	}
	return browserResult{}
}

// test has a browser go through the page, and answers what the server says of it. slow, when
// not 0, is what the browser's device has of a processor once it shows the page.
func (s *speedLab) test(t *testing.T, query string, slow float64) browserResult {
	t.Helper()
	args := chromium(t, fmt.Sprintf("http://%s:%s/test?start&%s", lab.FarAddr, speedPort, query))
	var device *cpuGroup
	if slow > 0 {
		device = newCPUGroup(t)
		args = append([]string{"sh", "-euc", "echo 0 > " + device.procs() + `; exec "$@"`, "sh"}, args...)
	}
	browser, err := s.Near.Start(lab.Command{Args: args, Stdout: io.Discard, Stderr: io.Discard})
	if err != nil {
		t.Fatal(err)
	}
	defer browser.Signal(os.Kill)
	if device != nil {
		s.slowOnceShown(t, device, slow)
	}
	return s.next(t)
}

// pageBytes are more than connections without the page carry, and less than the page.
const pageBytes = 8 << 10

// slowOnceShown waits until the page was sent, without which its start would last minutes.
func (s *speedLab) slowOnceShown(t *testing.T, device *cpuGroup, share float64) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(time.Minute); ; <-tick.C {
		_, down, err := s.Counters()
		if err != nil || time.Now().After(deadline) {
			t.Fatalf("the browser does not ask for the page: %v", err)
		}
		if down.DeliveredBytes > pageBytes {
			break
		}
	}
	if err := device.slow(share, 10*time.Millisecond); err != nil {
		t.Skipf("no share of a processor: %v", err)
	}
}

// speedCase is a cause that a browser's user is to be told of.
type speedCase struct {
	name        string
	paths       []string // a run takes one of them
	upload      bool
	slow        float64 // the device's share of a processor; 0: all
	limiters    []string
	least, most float64 // bit/s: what the cause leaves on the paths
}

// query is what the page is asked for.
func (c *speedCase) query(ms int) string {
	only := "download"
	if c.upload {
		only = "upload"
	}
	return fmt.Sprintf("only=%s&many=0&ms=%d", only, ms)
}

// judged says whether a result names the cause, and where it does not, whether it leaves it open.
func (c *speedCase) judged(t *testing.T, result browserResult) (d browserWay, right, open bool) {
	t.Helper()
	if len(result.Directions) != 1 || (result.Directions[0].Direction == "down") != c.upload {
		t.Fatalf("%+v", result)
	}
	d = result.Directions[0]
	right = slices.Contains(c.limiters, d.Limiter)
	among := slices.ContainsFunc(d.Candidates, func(one string) bool { return slices.Contains(c.limiters, one) })
	return d, right, d.Limiter == "unknown" || d.Confidence == "low" && among
}

// carried says whether the cause was there: what passed is what it leaves.
func (c *speedCase) carried(d browserWay) bool {
	return d.GoodputBps >= c.least && d.GoodputBps <= c.most
}

// The causes that a browser's user is told of, through links that a slow machine can fill too.
func TestSpeedTestNamesTheCause(t *testing.T) {
	clean, loss := []string{"rate=10mbit,rtt=40ms"}, []string{"rate=20mbit,rtt=40ms,loss=1%"}
	for _, c := range []speedCase{
		{"a clean line", clean, false, 0, []string{"bottleneck"}, 8.5e6, 9.7e6},
		{"loss", loss, false, 0, []string{"congestion"}, 1e6, 12e6},
		{"a small window", []string{"rate=20mbit,rtt=80ms,near.stack=windows-xp"}, false, 0, []string{"receiver-window"},
			3e6, 8e6},
		{"a clean line, up", clean, true, 0, []string{"bottleneck"}, 8.5e6, 9.7e6},
		{"loss, up", loss, true, 0, []string{"congestion"}, 1e6, 12e6},
		{"the server's window, up", []string{"rate=20mbit,rtt=80ms,far.stack=windows-xp"}, true, 0,
			[]string{"receiver-window"}, 3e6, 8e6},
	} {
		t.Run(c.name, func(t *testing.T) {
			d, right, open := c.judged(t, newSpeedLab(t, c.paths[0]).test(t, c.query(6000), 0))
			t.Logf("%.2f Mbit/s, %s, %s", d.GoodputBps/1e6, d.Limiter, d.Confidence)
			if !right && !open || !c.carried(d) {
				t.Errorf("%+v, want %v", d, c.limiters)
			}
		})
	}
}

// TestBankSpeedTest has a browser test through links at up to 300 Mbit/s, where it is known what
// limits it: FULLPIPE_BANK_TRIALS times each (10), FULLPIPE_BANK_CAUSES picks causes.
func TestBankSpeedTest(t *testing.T) {
	bankOnly(t)
	clean := []string{"rate=20mbit,rtt=40ms", "rate=100mbit,rtt=40ms", "rate=100mbit,rtt=10ms"}
	loss := []string{"rate=100mbit,rtt=40ms,loss=0.1%", "rate=100mbit,rtt=80ms,loss=0.1%"}
	fast := []string{"rate=300mbit,rtt=10ms", "rate=300mbit,rtt=40ms"}
	window := func(end string) []string {
		return []string{"rate=20mbit,rtt=80ms," + end + ".stack=windows-xp",
			"rate=100mbit,rtt=40ms," + end + ".stack=windows-xp"}
	}
	for _, c := range []speedCase{
		{"download, clean line", clean, false, 0, []string{"bottleneck"}, 14e6, 97e6},
		{"download, loss of 0.1 %", loss, false, 0, []string{"congestion"}, 3e6, 75e6},
		{"download, 64 KiB window of the browser's host", window("near"), false, 0, []string{"receiver-window"}, 3e6, 15e6},
		{"download, slow device", fast, false, 0.1, []string{"receiver-application", "cpu"}, 1e6, 240e6},
		{"upload, clean line", clean, true, 0, []string{"bottleneck"}, 14e6, 97e6},
		{"upload, loss of 0.1 %", loss, true, 0, []string{"congestion"}, 3e6, 75e6},
		{"upload, 64 KiB window of the server's host", window("far"), true, 0, []string{"receiver-window"}, 3e6, 15e6},
		{"upload, slow device", fast, true, 0.1, []string{"application", "cpu", "send-buffer", "sender"}, 1e6, 240e6},
	} {
		if strings.Contains(c.name, os.Getenv("FULLPIPE_BANK_CAUSES")) {
			t.Run(c.name, c.bank)
		}
	}
}

// bank carries out a case's runs and records its row.
func (c *speedCase) bank(t *testing.T) {
	want, err := strconv.Atoi(os.Getenv("FULLPIPE_BANK_TRIALS"))
	if err != nil {
		want = 10
	}
	runs := exact{want: want, crowded: c.slow > 0}
	right, sure := 0, 0
	said := map[string]int{}
	for n := 0; runs.more(); n++ {
		alone(t, func() {
			s := newSpeedLab(t, c.paths[n%len(c.paths)])
			defer s.Close() // and with it all of the browser's processes, before their group
			d, names, _ := c.judged(t, s.test(t, c.query(5000), c.slow))
			held, err := runs.keepLab(s.Lab)
			t.Logf("%s: %.2f Mbit/s, %s, %s %v", c.paths[n%len(c.paths)], d.GoodputBps/1e6, d.Limiter, d.Confidence,
				d.Candidates)
			if err != nil || !held {
				return
			}
			said[d.Limiter+", "+d.Confidence]++
			switch {
			case names && c.carried(d):
				right++
			case !names && d.Confidence == "high":
				sure++
			}
		})
	}
	record(t, runs.into(bankRow{Section: "Test from a browser", Case: c.name + ": " + strings.Join(c.paths, " and "),
		Claim:    "names the cause in 9 of 10, never another with high confidence",
		Measured: fmt.Sprintf("%d of %d right, %d wrong with high confidence", right, runs.counted, sure),
		Spread:   counts(said), Verdict: passed(sure == 0 && 10*right >= 9*runs.counted),
		Command: "FULLPIPE_BANK_CAUSES='" + c.name + "' make bank RUN=TestBankSpeedTest"}))
}

// counts lists what was said, and how often.
func counts(said map[string]int) string {
	var all []string
	for _, one := range slices.Sorted(maps.Keys(said)) {
		all = append(all, fmt.Sprintf("%d × %s", said[one], one))
	}
	return strings.Join(all, "; ")
}
