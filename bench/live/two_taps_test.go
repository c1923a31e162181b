//go:build linux

package live

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/e2e/harness"
	"github.com/fullpipe-net/fullpipe/internal/lab"
	"github.com/fullpipe-net/fullpipe/internal/lab/stalltest"
	printed "github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// TestTwoTapsWithClocksOfTheirOwn captures transfers at both ends of a lab, gives the far end's capture a clock of
// its own, and diagnoses both together: the direction of the queue, the place of the loss, and the offset between the
// clocks.
func TestTwoTapsWithClocksOfTheirOwn(t *testing.T) {
	for _, c := range []twoTaps{
		{"a full link", "rate=20mbit,rtt=40ms,queue=1bdp", verdict.Bottleneck, true, false, true,
			0.04},
		{"loss", "rate=20mbit,rtt=40ms,queue=2bdp,loss=1%", verdict.Congestion, false, false, true,
			0.04},
		{"acknowledgements wait", "rate=20mbit,rtt=40ms,queue=2bdp,down.rate=130kbit,down.queue=10kB", verdict.AckPath,
			false, true, false, 0.04 + 52*8/130e3},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			stalltest.Undisturbed(t, func() error { return c.once(t) })
		})
	}
}

// twoTaps is a path with the expected result of captures at both of its ends.
type twoTaps struct {
	name, path          string
	limiter             verdict.Name
	dataWaits, acksWait bool
	lost                bool
	least               float64 // seconds from tap to tap and back
}

func (c twoTaps) once(t *testing.T) error {
	dir := t.TempDir()
	s := harness.LabTransfer{Path: c.path, Spec: transfer.Spec{Direction: transfer.Up, Time: 6 * time.Second},
		Captures: &harness.Captures{Near: filepath.Join(dir, "near"), Far: filepath.Join(dir, "far")},
		Account:  new(lab.Lateness)}
	if _, err := harness.RunTransfer(t, s); err != nil {
		t.Fatal(err)
	}
	ahead, drift := (rand.Float64()-0.5)*1e5, (rand.Float64()-0.5)*400e-6 // a day; quartzes and adjtimex
	t.Logf("the far capture's clock: %.3f s ahead, %.1f ppm fast; the lab was late: %+v", ahead, drift*1e6,
		s.Account.Worse())
	setCapturesClock(t, s.Captures.Far, ahead, drift)
	near := c.compare(bothDiagnosed(t, s.Captures.Near, s.Captures.Far), ahead, drift)
	far := c.compare(bothDiagnosed(t, s.Captures.Far, s.Captures.Near), -ahead, -drift)
	return errors.Join(near, far)
}

// compare checks the findings against the path's configuration and the clocks' settings.
func (c twoTaps) compare(d printed.CapturedDirection, ahead, drift float64) error {
	b := d.Between
	if b == nil || b.Ways == nil {
		return fmt.Errorf("not aligned: %+v", b)
	}
	w := b.Ways
	const waits, segment = 8e-3, 1500 * 8 / 20e6 // seconds; the first small ones take the link less
	switch {
	case d.Limiter != c.limiter:
		return fmt.Errorf("%s, want %s: %+v, %+v", d.Limiter, c.limiter, *w, d.Evidence)
	case (b.LostBetweenBytes > 0) != c.lost || b.LostBeforeBytes > 0 || b.LostAfterBytes > 3*1460:
		return fmt.Errorf("lost %+v", *b)
	case (w.DataQueueS > waits) != c.dataWaits || (w.AckQueueS > waits) != c.acksWait:
		return fmt.Errorf("data waited %v s, acknowledgements %v s", w.DataQueueS, w.AckQueueS)
	case math.Abs(w.RTTMinS-c.least) > 0.002:
		return fmt.Errorf("%v s between the taps, want %v", w.RTTMinS, c.least)
	case math.Abs(w.ClockOffsetS-ahead) > w.RTTMinS/2+0.002 || math.Abs(w.ClockDrift-drift) > segment/6+50e-6:
		return fmt.Errorf("the other clock %v s ahead and %v fast, want %v and %v", w.ClockOffsetS, w.ClockDrift, ahead,
			drift)
	}
	return nil
}

// bothDiagnosed returns the direction that carried most in two captures.
func bothDiagnosed(t *testing.T, near, far string) (most printed.CapturedDirection) {
	t.Helper()
	program := harness.Program(t)
	cmd := exec.Command(program, "diagnose", "--near", near, "--far", far, "--json")
	cmd.Stderr = t.Output()
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var doc printed.Diagnose
	if err := json.Unmarshal(out, &doc); err != nil {
		t.Fatal(err)
	}
	for _, c := range doc.Connections {
		for _, d := range c.Directions {
			if d.Bytes > most.Bytes {
				most = d
			}
		}
	}
	if most.Bytes == 0 {
		t.Fatalf("nothing was sent: %s", out)
	}
	return most
}

// setCapturesClock rewrites a capture as one whose clock was ahead at its start, in seconds, and runs faster by a
// share of the time.
func setCapturesClock(t *testing.T, name string, ahead, faster float64) {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	const header, recordHeader = 24, 16
	unit := map[uint32]int64{0xa1b2c3d4: 1000, 0xa1b23c4d: 1}[binary.LittleEndian.Uint32(b)]
	if unit == 0 || len(b) < header+recordHeader {
		t.Fatal(fmt.Errorf("%s is no pcap of this machine: %x", name, b[:4]))
	}
	first := int64(0)
	for at := header; at+recordHeader <= len(b); {
		r := b[at:]
		stamp := int64(binary.LittleEndian.Uint32(r))*1e9 + int64(binary.LittleEndian.Uint32(r[4:]))*unit
		if first == 0 {
			first = stamp
		}
		stamp += int64(ahead*1e9 + faster*float64(stamp-first))
		binary.LittleEndian.PutUint32(r, uint32(stamp/1e9))
		binary.LittleEndian.PutUint32(r[4:], uint32(stamp%1e9/unit))
		at += recordHeader + int(binary.LittleEndian.Uint32(r[8:]))
	}
	if err := os.WriteFile(name, b, 0o600); err != nil {
		t.Fatal(err)
	}
}
