package predict

import (
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/link"
	"github.com/fullpipe-net/fullpipe/internal/testenv/must"
)

// TestTransfer_HalvedWindows compares predictions with measurements of windows of less than two segments on a busy
// machine. The sender halves them, and of the halves one or two fit into the receive buffer.
func TestTransfer_HalvedWindows(t *testing.T) {
	for _, c := range []struct {
		path   string
		buffer int
		bps    float64 // measured
	}{
		{"lan-10m,far.delack=200ms", 2306, 28.8e3},
		{"lan-10m,far.delack=200ms", 2600, 56.6e3},
		{"lan-10m,far.delack=100ms", 2400, 115e3},
		{"rate=20mbit,rtt=30ms", 2400, 363e3},
		{"rate=20mbit,rtt=30ms", 2800, 361e3},
	} {
		path := must.Get(link.Parse(c.path))(t)
		a := must.Get(Transfer(path, Setup{ReceiveBuffer: c.buffer}))(t)
		if a.Typical < 0.85*c.bps || a.Typical > 1.15*c.bps {
			t.Errorf("%s, buffer %d: %.3g kbit/s predicted, %.3g measured", c.path, c.buffer, a.Typical/1e3, c.bps/1e3)
		}
	}
}
