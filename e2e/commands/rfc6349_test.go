//go:build linux

package commands

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
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/fullpipe-net/fullpipe/e2e/harness"
	"github.com/fullpipe-net/fullpipe/internal/testenv"
)

// TestRFC6349OfALab runs the whole procedure on the real kernel, in both directions and with one frame size.
func TestRFC6349OfALab(t *testing.T) {
	t.Parallel()
	page := filepath.Join(t.TempDir(), "report.html")
	doc, status := harness.RunRFC6349(t, harness.RFC6349Command(t, "rate=10mbit,rtt=20ms", "--budget", "8s", "--cir",
		"10mbit", "--frames=1518", "--html", page))
	if (status == 0) != (doc.Verdict == "pass") || len(doc.Directions) != 2 || doc.Interrupted {
		t.Fatalf("status %d: %+v", status, doc)
	}
	// A busy machine makes round trips longer, never shorter: a lab that was calibrated meanwhile hands each packet over
	// at most 0.5 ms early.
	if doc.Path.MTU != 1500 || doc.Path.MSS != 1448 || doc.Path.RTT < 0.020-2*0.0005 {
		t.Errorf("path %+v", doc.Path)
	}
	for _, d := range doc.Directions {
		if d.Bottleneck.Bps <= 0 || d.BDP <= 0 || d.MaxTCP <= 0 || len(d.Criteria) != 4 ||
			len(d.Frames) != 1 {
			t.Errorf("%+v", d)
		}
		// Whether the search converges depends on the machine; both ends carry UDP in any case.
		unsettled := d.Bottleneck.Method == "UDP; the search did not end with one value"
		if d.Bottleneck.Method != "UDP" && !unsettled || unsettled && !d.Bottleneck.AtLeast {
			t.Errorf("%s: bottleneck %+v", d.Direction, d.Bottleneck)
		}
		for _, kind := range []string{"automatic", "single", "several", "both"} {
			i := slices.IndexFunc(d.Tests, func(one harness.RFC6349Test) bool { return one.Kind == kind })
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

// TestRFC6349WithStockIperf3 has an iperf3 as its far end: iperf3 carries UDP, and its system's retransmissions are
// unknown here.
func TestRFC6349WithStockIperf3(t *testing.T) {
	t.Parallel()
	testenv.Need(t, testenv.Iperf3)
	program := harness.Program(t)
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
	var doc harness.RFC6349Report
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

// terminal returns both sides of a new pseudo terminal.
func terminal(t *testing.T) (ours, theirs *os.File) {
	t.Helper()
	ours, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ours.Close() })
	n, err := unix.IoctlGetInt(int(ours.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(ours.Fd()), unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		theirs, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { theirs.Close() })
	return ours, theirs
}

// TestRFC6349Interrupted interrupts it when its progress line shows a first rate: the results so far are printed and
// marked.
func TestRFC6349Interrupted(t *testing.T) {
	t.Parallel()
	cmd := harness.RFC6349Command(t, "rate=5mbit,rtt=10ms", "--direction", "up", "--time", "2s")
	ours, theirs := terminal(t)
	var out bytes.Buffer
	cmd.Stdout = &out
	cmd.Stderr = theirs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	theirs.Close()
	interrupt := sync.OnceFunc(func() { cmd.Process.Signal(syscall.SIGINT) })
	var problems bytes.Buffer
	for b := make([]byte, 4096); ; { // until the program closes its side
		n, err := ours.Read(b)
		problems.Write(b[:n])
		if bytes.Contains(problems.Bytes(), []byte(" so far ")) {
			interrupt()
		}
		if err != nil {
			break
		}
	}
	err := cmd.Wait()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 130 {
		t.Fatalf("%v: %s%s", err, out.String(), problems.String())
	}
	var doc harness.RFC6349Report
	if err := json.Unmarshal(out.Bytes(), &doc); err != nil || !doc.Interrupted {
		t.Errorf("%v: %s", err, out.String())
	}
}
