//go:build linux

package kernel

import (
	"encoding/json"
	"os/exec"
	"testing"

	"github.com/fullpipe-net/fullpipe/e2e/harness"
)

// TestLabPeerOverIPv6 measures a lab over IPv6, inside a tunnel and outside it.
func TestLabPeerOverIPv6(t *testing.T) {
	t.Parallel()
	for path, far := range map[string]string{"rate=10mbit,rtt=10ms": "2001:2::2",
		"rate=10mbit,rtt=10ms,vpn=wireguard": "2001:2:0:1::2"} {
		out, err := exec.Command(harness.Program(t), "measure", "lab:"+path, "-6", "-t", "1s", "--json").Output()
		var doc struct {
			Far        struct{ Address string }
			Directions []harness.MeasuredTransfer
		}
		if jerr := json.Unmarshal(out, &doc); err != nil || jerr != nil || len(doc.Directions) != 1 {
			t.Fatalf("%s: %v, %v: %s", path, err, jerr, out)
		}
		if doc.Far.Address != far || doc.Directions[0].Bytes == 0 {
			t.Errorf("%s: %d bytes to %s; want %s", path, doc.Directions[0].Bytes, doc.Far.Address, far)
		}
	}
}
