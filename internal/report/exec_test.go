package report

import (
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/advice"
	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// TestNameOwnBuffer checks that the remedy names the buffer that exec set itself, and no buffer of the other end.
func TestNameOwnBuffer(t *testing.T) {
	for name, c := range map[string]struct {
		direction transfer.Direction
		limiter   verdict.Name
		asked     transfer.Socket
		want      string
	}{
		"own send buffer": {transfer.Up, verdict.SendBuffer, transfer.Socket{SendBuffer: 1 << 16}, "--send-buffer"},
		"the system's":    {transfer.Up, verdict.SendBuffer, transfer.Socket{ReceiveBuffer: 1 << 16}, ""},
		"own receive buffer": {transfer.Down, verdict.ReceiverWindow, transfer.Socket{ReceiveBuffer: 1 << 16},
			"--receive-buffer"},
		"the other end's window":    {transfer.Up, verdict.ReceiverWindow, transfer.Socket{ReceiveBuffer: 1 << 16}, ""},
		"own buffer on a full link": {transfer.Up, verdict.Bottleneck, transfer.Socket{SendBuffer: 1 << 16}, ""},
	} {
		v := verdict.Verdict{Limiter: c.limiter, Confidence: verdict.Medium}
		d := record.Direction{Direction: c.direction, Verdict: v, Fix: advice.Fixes(v, advice.Facts{})}
		nameOwnBuffer(&d, c.asked)
		got := ""
		if s := d.Fix[0].Settings; len(s) > 0 {
			got = s[0].Name
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
