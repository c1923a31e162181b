//go:build linux

package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"
)

// swept is what the tests read of `sweep --json`.
type swept struct {
	Complete    bool
	Interrupted bool
	BytesSent   int64 `json:"bytes_sent"`
	Paths       []struct {
		RTT      float64 `json:"rtt_min_s"`
		Capacity float64 `json:"capacity_bps"`
		BDP      float64 `json:"bdp_bytes"`
	}
	Cells []sweptCell
}

type sweptCell struct {
	Direction     string
	Send          int        `json:"send_buffer_bytes"`
	Receive       int        `json:"receive_buffer_bytes"`
	Goodput       float64    `json:"goodput_bps"`
	CI95          [2]float64 `json:"ci95_bps"`
	Runs          []float64  `json:"runs_bps"`
	Tight         bool
	Limiter       string
	Predicted     bool
	SendBuffer    sweptBuffer `json:"send_buffer"`
	ReceiveBuffer sweptBuffer `json:"receive_buffer"`
}

type sweptBuffer struct {
	Effective int `json:"effective_bytes"`
	Clipped   bool
}

// at finds a cell.
func (s *swept) at(send, receive int) sweptCell {
	i := slices.IndexFunc(s.Cells, func(c sweptCell) bool { return c.Send == send && c.Receive == receive })
	if i < 0 {
		return sweptCell{}
	}
	return s.Cells[i]
}

// sweepCommand is the real program with a sweep of a lab.
func sweepCommand(t *testing.T, profile string, more ...string) *exec.Cmd {
	t.Helper()
	program, err := fullpipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), program, append([]string{"sweep", "lab:" + profile, "--json"}, more...)...)
	cmd.Env = append(os.Environ(), "XDG_CACHE_HOME="+t.TempDir())
	return cmd
}

func runSweep(t *testing.T, cmd *exec.Cmd) (doc swept) {
	t.Helper()
	var out, problems bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &problems
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v: %v: %s%s", cmd.Args, err, out.String(), problems.String())
	}
	if err := json.Unmarshal(out.Bytes(), &doc); err != nil {
		t.Fatalf("%v: %s", err, out.String())
	}
	return doc
}

// TestSweepOfALab measures four cells in both directions on the real kernel: a window of
// 8 KiB gives a fraction of one that fills the path, whoever sends.
func TestSweepOfALab(t *testing.T) {
	t.Parallel()
	doc := runSweep(t, sweepCommand(t, "rate=10mbit,rtt=40ms", "--send-buffers", "automatic", "--receive-buffers",
		"8K,256K", "--direction", "both", "--time", "500ms", "--repeats", "1"))
	if len(doc.Cells) != 4 || !doc.Complete || len(doc.Paths) != 2 {
		t.Fatalf("%+v", doc)
	}
	for i := 0; i < 4; i += 2 {
		small, large := doc.Cells[i], doc.Cells[i+1]
		if small.Goodput <= 0 || small.Goodput > large.Goodput/2 || small.Limiter != "receiver-window" ||
			small.ReceiveBuffer.Effective == 0 || large.Predicted {
			t.Errorf("8 KiB at 40 ms: %+v\n256 KiB: %+v", small, large)
		}
	}
}

// TestKilledSweepGoesOn kills the whole sweep again and again; what was measured stands,
// and the end is that of a sweep that was left alone.
func TestKilledSweepGoesOn(t *testing.T) {
	t.Parallel()
	journal := filepath.Join(t.TempDir(), "journal")
	args := []string{"--send-buffers", "automatic", "--receive-buffers", "8K,16K,64K", "--time", "200ms", "--repeats", "2",
		"--resume", journal}
	lines := func() int {
		text, err := os.ReadFile(journal)
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		return bytes.Count(text, []byte(`"run":`))
	}
	kept := 0
	for range 2 {
		cmd := sweepCommand(t, "rate=10mbit,rtt=20ms", args...)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		ended := make(chan struct{})
		go func() { cmd.Wait(); close(ended) }()
		for lines() < kept+2 {
			select {
			case <-ended:
				t.Fatalf("it ended after %d runs", lines())
			case <-t.Context().Done():
				t.Fatal(t.Context().Err())
			case <-time.After(5 * time.Millisecond):
			}
		}
		cmd.Process.Signal(syscall.SIGKILL)
		<-ended
		if kept = lines(); kept >= 6 {
			t.Skipf("the machine stood still: all %d runs were made before the kill", kept)
		}
	}
	doc := runSweep(t, sweepCommand(t, "rate=10mbit,rtt=20ms", args...))
	if !doc.Complete || lines() < 6 {
		t.Errorf("%d runs kept: %+v", lines(), doc)
	}
	for _, c := range doc.Cells {
		if len(c.Runs) != 2 {
			t.Errorf("%d runs of %+v", len(c.Runs), c)
		}
	}
}

// TestSweepPage opens a page in a real browser, on a desk and on a phone, light and dark:
// it fits, everything is drawn, cells are told apart, text is read on its ground.
func TestSweepPage(t *testing.T) {
	t.Parallel()
	html, err := os.ReadFile("../internal/render/html/testdata/sweep.html")
	if err != nil {
		t.Fatal(err)
	}
	ctx := scripted(t)
	eachView(t, ctx, servedPage(t, html), "svg", func(name string) {
		const contrast = `(() => {
			const parts = c => c.match(/[\d.]+/g).slice(0, 3).map(v => { v /= 255; return v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4 });
			const luminance = c => { const [r, g, b] = parts(c); return 0.2126 * r + 0.7152 * g + 0.0722 * b };
			const ratio = (a, b) => (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
			let least = 99;
			for (const cell of document.querySelectorAll('.label')) {
				const text = getComputedStyle(cell.querySelector('.v')), x = text.fill, y = text.stroke;
				least = Math.min(least, ratio(luminance(x), luminance(y)));
			}
			return least.toFixed(2);
		})()`
		var least float64
		if _, err := fmt.Sscan(evaluate(t, ctx, contrast), &least); err != nil || least < 4 || least > 21 {
			t.Errorf("%s: the least contrast of a cell's text is %v, %v", name, least, err)
		}
		if got := evaluate(t, ctx,
			`String(parseFloat(getComputedStyle(document.querySelector('.label .v')).fontSize) * document.querySelector('svg').getBoundingClientRect().width / document.querySelector('svg').viewBox.baseVal.width >= 9)`); got != "true" {
			t.Errorf("%s: the numbers are too small to read", name)
		}
	})
	prints(t, ctx)
}
