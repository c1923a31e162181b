package main

import (
	"io"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/testenv"
)

// TestArithmeticAgainstThePublishedFigures compares the arithmetic with the published figures, without a measurement:
// the default columns of all tables together, and the window that the send-buffer sweep implies.
func TestArithmeticAgainstThePublishedFigures(t *testing.T) {
	experiments, err := all()
	if err != nil {
		t.Fatal(err)
	}
	tables := experiments[:gatewayTables]
	var pool []*cell
	for _, e := range tables {
		pool = append(pool, where(e.cells, isDefault)...)
	}
	rank, typical, n := agreement(pool, expected, published)
	if rank < 0.93 || !within(typical, 0.15) || n != 30 {
		t.Errorf("%d default cells: rank correlation %.3f, median ratio %.2f", n, rank, typical)
	}
	sweep := experiments[gatewayTables]
	free := where(sweep.cells, func(c *cell) bool { return c.expected < 0.9*setting{}.ceiling() })
	if typical := median(ratios(free, expected, published)); !within(typical, 0.15) || len(free) < 8 {
		t.Errorf("%d free cells of the send-buffer sweep: median ratio %.2f", len(free), typical)
	}
	if rtt := sweep.cells[0].rtt; rtt < 1500*time.Microsecond || rtt > 1900*time.Microsecond {
		t.Errorf("the sweep implies a round trip of %v", rtt)
	}
}

// A document of figures that agree passes everywhere; one whose lab fell to a third fails.
func TestDocument(t *testing.T) {
	for _, tt := range []struct {
		share float64
		want  string
		never string
	}{{1, "- pass: ", "- fail: "}, {1. / 3, "- fail: Its median ratio", "- pass: Its median ratio"}} {
		experiments, err := all()
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range experiments {
			for _, c := range e.cells {
				c.measured, c.limiters = []float64{tt.share * c.expected}, []string{"send-buffer"}
			}
			if e.title == "Windows 95: one value for every line" {
				e.at("2144", "LAN 10M").measured[0] /= 3
			}
		}
		var out strings.Builder
		write(&out, experiments, judgePool(experiments[:gatewayTables]), "a test", 1)
		text := out.String()
		if !strings.Contains(text, tt.want) || strings.Contains(text, tt.never) {
			t.Errorf("at %.2f of what is expected the document says:\n%s", tt.share, text)
		}
		for _, want := range []string{"| 8 KiB | **6.81** / 5.46 /", "× 2.2", "61.7 kbit/s"} {
			if !strings.Contains(text, want) {
				t.Errorf("the document has no %q", want)
			}
		}
	}
}

// TestOneCell runs one cell of the tables on real TCP: 8192 bytes a round trip of 40 ms, which no machine exceeds.
// The experiments themselves judge how close a machine comes, and its limiter.
func TestOneCell(t *testing.T) {
	testenv.Need(t, testenv.Lab, testenv.Go)
	t.Parallel()
	program := filepath.Join(t.TempDir(), "fullpipe")
	build := exec.Command("go", "build", "-o", program, "./cmd/fullpipe")
	build.Dir = "../.."
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	c := setting{}.cell(row{write: 8192}, "network, default", 1.77e6, longPath)
	err := runner{program, 1, io.Discard}.run(t.Context(), []*experiment{{cells: []*cell{c}}})
	if err != nil {
		t.Fatal(err)
	}
	if got := c.median() / c.expected; got <= 0 || got > 1.05 || c.limiter() == "" {
		t.Errorf("%s: %.2f of what is expected, limited by %s", c.command(), got, c.limiter())
	}
}

// A program that fails is named with what it was asked.
func TestAFailedCell(t *testing.T) {
	c := &cell{lab: "wan-40ms"}
	err := runner{"false", 1, io.Discard}.run(t.Context(), []*experiment{{cells: []*cell{c, c, c, c, c, c}}})
	if err == nil || !strings.Contains(err.Error(), "fullpipe measure wan-40ms") {
		t.Errorf("the error is %v", err)
	}
}

func TestSpansAreJudgedByBothEnds(t *testing.T) {
	for s, want := range map[span]string{{0.96, 0.97, 0.98}: "pass", {0.90, 0.96, 0.98}: "inconclusive",
		{0.90, 0.94, 0.96}: "inconclusive", {0.8, 0.85, 0.9}: "fail"} {
		if got := s.judge(atLeast(0.95)); got != want {
			t.Errorf("%v, at least 0.95 required: %s, want %s", s, got, want)
		}
	}
}
