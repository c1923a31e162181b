//go:build linux

package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	pages "github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/render/html"
	reports "github.com/fullpipe-net/fullpipe/internal/report"
	"github.com/fullpipe-net/fullpipe/internal/rfc6349"
	"github.com/fullpipe-net/fullpipe/internal/search/simpath"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/tune/simpeer"
)

// standard is what the tests read of `rfc6349 --json`.
type standard struct {
	Late        *pages.Late
	Verdict     string
	Interrupted bool
	Path        struct {
		MTU int     `json:"path_mtu_bytes"`
		RTT float64 `json:"rtt_min_s"`
		MSS int     `json:"mss_bytes"`
	}
	Directions []struct {
		Direction  string
		Verdict    string
		Bottleneck struct {
			Bps     float64    `json:"ip_bps"`
			Range   [2]float64 `json:"range_bps"`
			AtLeast bool       `json:"at_least"`
			Method  string
		}
		MaxTCP   float64 `json:"max_tcp_bps"`
		BDP      float64 `json:"bdp_bytes"`
		Criteria []struct{ Name, Verdict, Reason string }
		Tests    []standardTest
		Frames   []struct {
			Bytes   int `json:"frame_bytes"`
			Verdict string
			Reason  string
		}
	}
	Formulas []struct{ Name, Text string }
	Elapsed  float64 `json:"elapsed_s"`
}

type standardTest struct {
	Kind    string
	Window  int        `json:"window_bytes"`
	Share   float64    `json:"bdp_ratio"`
	Goodput float64    `json:"steady_goodput_bps"`
	CI95    [2]float64 `json:"ci95_bps"`
	Limiter string
	Runs    []struct {
		Ratio      float64  `json:"transfer_time_ratio"`
		Settled    float64  `json:"steady_transfer_time_ratio"`
		Sent       int64    `json:"sent_bytes"`
		Efficiency *float64 `json:"efficiency_ratio"`
		Delay      *float64 `json:"buffer_delay_ratio"`
	}
}

// rfc6349Command is the real program with the standard's test of a lab.
func rfc6349Command(t *testing.T, profile string, more ...string) *exec.Cmd {
	t.Helper()
	program, err := fullpipe()
	if err != nil {
		t.Fatal(err)
	}
	return exec.CommandContext(t.Context(), program, append([]string{"rfc6349", "lab:" + profile, "--json"}, more...)...)
}

// runRFC6349 takes exit status 3, too, which says that the line is not signed off.
func runRFC6349(t *testing.T, cmd *exec.Cmd) (doc standard, status int) {
	t.Helper()
	var out, problems bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &problems
	err := cmd.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		status = exit.ExitCode()
	}
	if err != nil && status != 3 && status != 130 {
		t.Fatalf("%v: %v: %s%s", cmd.Args, err, out.String(), problems.String())
	}
	if err := json.Unmarshal(out.Bytes(), &doc); err != nil {
		t.Fatalf("%v: %s%s", err, out.String(), problems.String())
	}
	return doc, status
}

// TestRFC6349OfALab takes the whole procedure through the real kernel, both directions
// and some frames.
func TestRFC6349OfALab(t *testing.T) {
	t.Parallel()
	page := filepath.Join(t.TempDir(), "report.html")
	var doc standard
	var status int
	undisturbed(t, func() error {
		doc, status = runRFC6349(t, rfc6349Command(t, "rate=10mbit,rtt=20ms", "--budget", "8s", "--cir", "10mbit",
			"--frames=1518", "--html", page))
		for _, d := range doc.Directions {
			if d.Bottleneck.Method != "UDP" {
				return fmt.Errorf("%s: the bottleneck is known by %q", d.Direction, d.Bottleneck.Method)
			}
		}
		return nil
	})
	if (status == 0) != (doc.Verdict == "pass") || len(doc.Directions) != 2 || doc.Interrupted {
		t.Fatalf("status %d: %+v", status, doc)
	}
	if doc.Path.MTU != 1500 || doc.Path.MSS != 1448 || doc.Path.RTT < 0.0195 {
		t.Errorf("path %+v", doc.Path)
	}
	for _, d := range doc.Directions {
		if d.Bottleneck.Method != "UDP" || d.Bottleneck.Bps <= 0 || d.BDP <= 0 || d.MaxTCP <= 0 || len(d.Criteria) != 4 ||
			len(d.Frames) != 1 {
			t.Errorf("%+v", d)
		}
		for _, kind := range []string{"automatic", "single", "several", "both"} {
			i := slices.IndexFunc(d.Tests, func(one standardTest) bool { return one.Kind == kind })
			if i < 0 {
				t.Errorf("%s: no test of %q", d.Direction, kind)
				continue
			}
			for _, run := range d.Tests[i].Runs {
				if run.Ratio <= 0 || run.Sent == 0 || run.Efficiency == nil || *run.Efficiency > 1 || run.Delay == nil {
					t.Errorf("%s, %s: %+v", d.Direction, kind, run)
				}
			}
		}
	}
	if len(doc.Formulas) < 8 { // of a run that the budget left no time for there are none
		t.Errorf("%d formulas", len(doc.Formulas))
	}
	if html, err := os.ReadFile(page); err != nil || !bytes.Contains(html, []byte("</html>")) {
		t.Errorf("%d bytes of page, %v", len(html), err)
	}
}

// TestRFC6349WithStockIperf3 has an iperf3 as its far end: it carries UDP, and what its
// system sent is not known here.
func TestRFC6349WithStockIperf3(t *testing.T) {
	t.Parallel()
	needIperf3(t)
	program, err := fullpipe()
	if err != nil {
		t.Fatal(err)
	}
	page := filepath.Join(t.TempDir(), "out.json")
	cmd := exec.CommandContext(t.Context(), program, "lab", "rate=10mbit,rtt=10ms", "--far", "iperf3 -s", "--", "sh", "-c",
		`exec "$0" rfc6349 iperf3://$FULLPIPE_FAR --direction down --budget 7s --json > "$1"`, program, page)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	var doc standard
	if err := json.Unmarshal(text, &doc); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	if len(doc.Directions) != 1 || doc.Verdict != "not-judged" {
		t.Fatalf("%s", text)
	}
	d := doc.Directions[0]
	if !strings.HasPrefix(d.Bottleneck.Method, "UDP") || d.Bottleneck.Bps <= 0 || len(d.Tests) < 3 {
		t.Errorf("%+v", d)
	}
	for _, test := range d.Tests {
		for _, run := range test.Runs {
			if run.Efficiency != nil || run.Ratio <= 0 {
				t.Errorf("%s: %+v", test.Kind, run)
			}
		}
	}
}

// TestRFC6349Interrupted ends it early: what was measured is printed and marked.
func TestRFC6349Interrupted(t *testing.T) {
	t.Parallel()
	cmd := rfc6349Command(t, "rate=5mbit,rtt=10ms", "--direction", "up", "--time", "2s")
	var out bytes.Buffer
	cmd.Stdout = &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(4*time.Second, func() { cmd.Process.Signal(syscall.SIGINT) })
	err := cmd.Wait()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 130 {
		t.Fatalf("%v: %s", err, out.String())
	}
	var doc standard
	if out.Len() == 0 {
		t.Skip("the machine stood still: nothing was met in 4 s")
	}
	if err := json.Unmarshal(out.Bytes(), &doc); err != nil || !doc.Interrupted {
		t.Errorf("%v: %s", err, out.String())
	}
}

// TestRFC6349Page opens a report in a real browser, on a desk and on a phone, light, dark
// and printed: it fits, is whole without anything from outside, and its text can be read.
func TestRFC6349Page(t *testing.T) {
	t.Parallel()
	line := &simpath.Path{RateBps: 100e6, RTT: 40 * time.Millisecond, MSS: 1448, Queue: 500e3, Harm: 1, AutoWindow: 1e6,
		Noise: simpath.Noise{Dev: 0.002}}
	cfg := rfc6349.Config{Peer: simpeer.New(line, 1), Directions: []transfer.Direction{transfer.Up, transfer.Down},
		Tolerance: 0.05,
		Committed: map[transfer.Direction]float64{transfer.Up: 100e6, transfer.Down: 150e6},
		Frames:    rfc6349.Frames{Sizes: rfc6349.FrameSizes()}}
	r, err := rfc6349.Run(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	var written bytes.Buffer
	if err := html.Write(&written, reports.RFC6349(pages.Header{StartedAt: time.Now()}, "far.example.net",
		"A line whose name is rather long for a phone", cfg, r)); err != nil {
		t.Fatal(err)
	}
	for _, outside := range []string{"http://", "https://", "src=", "@import", "<script"} {
		if strings.Contains(written.String(), outside) {
			t.Errorf("the page holds %s", outside)
		}
	}
	ctx := scripted(t)
	eachView(t, ctx, servedPage(t, written.Bytes()), "svg.figure", func(name string) {
		const contrast = `(() => {
			const linear = v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
			const luminance = c => {
				const [r, g, b] = c.match(/[\d.]+/g).slice(0, 3).map(v => linear(v / 255));
				return 0.2126 * r + 0.7152 * g + 0.0722 * b };
			const paper = luminance(getComputedStyle(document.body).backgroundColor);
			let least = 99;
			for (const e of document.querySelectorAll('td, th, p, figcaption, svg text')) {
				const ink = luminance(e.tagName === 'text' ? getComputedStyle(e).fill : getComputedStyle(e).color);
				least = Math.min(least, (Math.max(ink, paper) + 0.05) / (Math.min(ink, paper) + 0.05));
			}
			return least.toFixed(2);
		})()`
		var least float64
		if _, err := fmt.Sscan(evaluate(t, ctx, contrast), &least); err != nil || least < 4 || least > 21 {
			t.Errorf("%s: the least contrast of text is %v, %v", name, least, err)
		}
	})
	prints(t, ctx)
}
