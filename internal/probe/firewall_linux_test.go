package probe_test

import (
	"context"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/server"
	"github.com/fullpipe-net/fullpipe/internal/testenv"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// TestFirewall_OnlyTheServePortIsOpen drops the SYNs to all ports that the far system chooses. The far end's
// windows and segment sizes work through the server's port. A server that cannot share it names the ports and --tunnel.
func TestFirewall_OnlyTheServePortIsOpen(t *testing.T) {
	testenv.Need(t, testenv.NetworkNamespace)
	if !testenv.Inside(t, syscall.CLONE_NEWNET) {
		return
	}
	for _, rule := range []string{"add pref 10 lookup local", "del pref 0",
		"add pref 5 iif lo ipproto tcp sport 32768-60999 dport 32768-60999 blackhole"} {
		if out, err := exec.Command("ip", strings.Fields("rule "+rule)...).CombinedOutput(); err != nil {
			t.Fatalf("ip rule %s: %v: %s", rule, err, out)
		}
	}
	requested := []transfer.Socket{{Clamp: 20_000}, {ReceiveBuffer: 50_000}, {ReceiveBuffer: 50_000, Clamp: 20_000},
		{MSS: 600}, {Clamp: 30_000}}
	c := connect(t, serve(t, server.Config{Address: "127.0.0.1:5201", Key: key, ShareWindows: true}), key)
	for _, far := range requested {
		for _, direction := range []transfer.Direction{transfer.Up, transfer.Down} {
			spec := transfer.Spec{Direction: direction, Bytes: 100_000, Streams: 2, Far: far}
			if _, err := transfer.Run(t.Context(), c, spec, nil); err != nil {
				t.Errorf("%s, %+v: %v", direction, far, err)
			}
		}
	}
	address := serve(t, server.Config{Address: "127.0.0.1:5202", Key: key})
	alone, err := far(address).Connect(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	defer alone.Close()
	_, err = transfer.Run(t.Context(), alone, transfer.Spec{Direction: transfer.Up, Bytes: 1000, Far: requested[0]}, nil)
	advice, ok := err.(interface{ Try() string })
	if !ok || !strings.Contains(advice.Try(), "32768 to 60999") || !strings.Contains(advice.Try(), "--tunnel") {
		t.Errorf("without a shared port: %v", err)
	}
}
