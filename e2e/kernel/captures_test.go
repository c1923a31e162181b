//go:build linux

package kernel

import (
	"os"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/e2e/harness"
)

// TestSentFrom checks the taps themselves: three of them see one short transfer whole.
func TestSentFrom(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := harness.PathPoint{RateBps: 10e6, RTT: 20 * time.Millisecond}.UnlimitedTransfer()
	s.Spec.Time, s.Spec.Bytes = 0, 500_000
	s.Captures = &harness.Captures{Near: dir + "/near", Far: dir + "/far", Middle: dir + "/middle"}
	result, err := harness.RunTransfer(t, s)
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{s.Captures.Near, s.Captures.Far, s.Captures.Middle} {
		g, d, err := harness.DiagnoseSender(file, result.Sender().Streams[0].Local)
		if err != nil {
			t.Fatal(err)
		}
		if d.Bytes < 500_000 || s.Captures.Lost == 0 && d.Unseen > 0 {
			t.Errorf("%s: %d bytes, %d of them unseen; tcpdump lost %d packets", file, d.Bytes, d.Unseen, s.Captures.Lost)
		}
		if info, err := os.Stat(file); err != nil || g.RTT <= 0 {
			t.Errorf("%v, %v, round trip %v", info, err, g.RTT)
		}
	}
}
