package diagnose

import (
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/flow"
)

func TestPassingMSS(t *testing.T) {
	four := flow.Endpoint4(0xc0000201, 443)
	six := flow.Endpoint{Hi: 0x20010db800000000, Lo: 1, Port: 443}
	for _, tt := range []struct {
		name      string
		to        flow.Endpoint
		mss       int
		passed    int64
		routerMTU int
		want      int
	}{
		{"a shorter segment was acknowledged", four, 1448, 1348, 0, 1348},
		{"only whole segments were acknowledged", four, 1448, 1448, 0, 0},
		{"a super-segment was acknowledged", four, 1448, 28960, 0, 0},
		{"a router names its MTU", four, 1448, 90, 1400, 1360},
		{"a router names its MTU, IPv6", six, 1428, 90, 1400, 1340},
		{"nothing was acknowledged", four, 1448, 0, 0, 0},
	} {
		d := &flow.Direction{To: tt.to, MSS: tt.mss, RouterMTU: tt.routerMTU}
		d.MaxPassed = tt.passed
		if got := passingMSS(d); got != tt.want {
			t.Errorf("%s: %d, want %d", tt.name, got, tt.want)
		}
	}
}
