//go:build linux

package bench

import (
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/e2e/harness"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// TestBankDelayedAcknowledgements checks predict's arithmetic for a receiver that waits for a second full segment:
// windows below two segments wait for its timer, and larger ones do not.
func TestBankDelayedAcknowledgements(t *testing.T) {
	bankOnly(t) // goodputs by a timer, which a machine that stalls does not keep
	for _, tt := range []struct {
		name, settings string
		least, most    float64 // bit/s
	}{
		{"below two segments", "far.delack=150ms,far.window=2100", 70e3, 115e3}, // a segment to 2100 bytes each 155 ms,
		{"two segments", "far.delack=150ms,far.window=2920", 1.1e6, 2.6e6},
		{"many", "far.delack=150ms", 3.2e6, 3.9e6},
		{"timestamps", "far.delack=150ms,far.stack=linux-6.1,near.stack=linux-6.1", 3.2e6, 3.9e6},
		{"a narrow path", "far.delack=150ms,mtu=1300", 1.5e6, 3.9e6},
		{"Linux below two segments", "far.window=2500", 1e6, 2.6e6},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r, err := harness.RunTransfer(t, harness.LabTransfer{Path: "rate=4mbit,rtt=5ms,stack=windows-95,near.afd=off," +
				tt.settings,
				Spec: transfer.Spec{Direction: transfer.Up, Time: 2 * time.Second}})
			if err != nil {
				t.Fatal(err)
			}
			span, ok := r.Received()
			if bps := span.Bps(); !ok || bps < tt.least || bps > tt.most {
				t.Errorf("%.0f bit/s, want %.0f to %.0f", bps, tt.least, tt.most)
			}
		})
	}
}
