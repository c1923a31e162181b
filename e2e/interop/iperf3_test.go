//go:build linux

package interop

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/e2e/harness"
	"github.com/fullpipe-net/fullpipe/internal/iperf3"
	"github.com/fullpipe-net/fullpipe/internal/testenv"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// Every option that iperf3's clients may bring, one short run each.
func TestRealIperf3ClientsOnOurServer(t *testing.T) {
	for _, c := range harness.Iperf3ClientCases() {
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			c.Run(t)
		})
	}
}

// TestSmallWindowsHoldOnOurServer: a requested window applies from the handshake on, and to no other connection. Linux
// grants SO_RCVBUF twice the request. At first it offers half of the buffer as the window, and then the share that
// payload has in the packets' memory (tcp_win_from_space): more than half with 3000-byte packets, never all of it.
func TestSmallWindowsHoldOnOurServer(t *testing.T) {
	t.Parallel()
	program := testenv.Program(t, testenv.Iperf3)
	reports := make(chan iperf3.Report, 1)
	port := strconv.Itoa(harness.ServeIperf3(t, "127.0.0.1:0", reports))
	const automatic = 64 << 10 // bytes; the kernel's first window where nobody requests one
	for _, asked := range []int{8 << 10, 0, 32 << 10} {
		for _, size := range []string{"3000", "128K"} {
			args := []string{"-c", "127.0.0.1", "-p", port, "-J", "-n", "300K", "-l", size}
			if asked > 0 {
				args = append(args, "-w", strconv.Itoa(asked))
			}
			out, err := exec.CommandContext(t.Context(), program, args...).Output()
			var client harness.Iperf3Output
			if err := errors.Join(err, json.Unmarshal(out, &client)); err != nil || len(client.Intervals) == 0 {
				t.Fatalf("%v: %s", err, out)
			}
			r := <-reports
			if len(r.Outcomes) != 1 || len(r.Outcomes[0].TCP.Near.Streams) != 1 {
				t.Fatalf("%+v", r)
			}
			stream := r.Outcomes[0].TCP.Near.Streams[0]
			got, first, offered := stream.ReceiveBuffer, stream.Samples[0], client.Intervals[0].Streams[0].SendWnd
			switch {
			case asked == 0:
				if got.Requested != 0 || got.Effective < automatic {
					t.Errorf("no window requested, %s bytes a write: %+v", size, got)
				}
			case got.Granted != 2*asked || got.Effective < asked/2 || got.Effective >= got.Granted || offered >= got.Granted:
				t.Errorf("-w %d -l %s: the client saw a window of %d bytes, the server %+v", asked, size, offered, got)
			case first.Received <= iperf3.CookieSize && int(first.ReceiveWnd) > asked:
				t.Errorf("-w %d -l %s: the first window is %d bytes", asked, size, first.ReceiveWnd)
			}
		}
	}
}

// TestServe_RealIperf3ClientsShowItsLimits checks that a real client shows, in its own words, why a server with
// limits does not serve it.
func TestServe_RealIperf3ClientsShowItsLimits(t *testing.T) {
	t.Parallel()
	client := testenv.Program(t, testenv.Iperf3)
	program := harness.Program(t)
	server := exec.Command(program, "serve", "--iperf3", "--json", "--listen", "127.0.0.1:0", "--max-tests", "1",
		"--max-time", "30s", "--max-rate", "20mbit",
		"--max-streams", "4", "--max-buffers", "1MB")
	out, err := server.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Process.Kill(); server.Wait() })
	events := json.NewDecoder(out)
	var ready struct{ Listen string }
	if err := events.Decode(&ready); err != nil {
		t.Fatal(err)
	}
	go io.Copy(io.Discard, out)
	_, port, err := net.SplitHostPort(ready.Listen)
	if err != nil {
		t.Fatal(err)
	}
	run := func(args string) string {
		out, _ := exec.CommandContext(t.Context(), client, append([]string{"-c", "127.0.0.1", "-p", port, "-J"},
			strings.Fields(args)...)...).Output()
		var doc harness.Iperf3Output
		if err := json.Unmarshal(out, &doc); err != nil {
			t.Fatalf("%s: %v: %s", args, err, out)
		}
		return doc.Error
	}
	for _, c := range []struct{ args, want string }{
		{"-t 31 -b 10M", "37"}, // iperf3 3.12 has no words for it
		{"-t 1", "total required bandwidth"},
		{"-t 1 -b 21M", "total required bandwidth"},
		{"-t 1 -b 1M -P 5", "parameters"},
		{"-t 1 -b 1M -w 600K", "socket buffer"},
	} {
		if got := run(c.args); !strings.Contains(got, c.want) {
			t.Errorf("iperf3 %s: %q; want %q", c.args, got, c.want)
		}
	}
	peer := iperf3.NewPeer(ready.Listen)
	defer peer.Close()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	runs, over := make(chan bool, 1), make(chan bool)
	go func() {
		defer close(over)
		spec := transfer.Spec{Direction: transfer.Down, Time: 20 * time.Second, Program: transfer.Program{WriteBytes: 1000,
			WriteBps: 1e6}}
		transfer.Run(ctx, peer, spec, func(transfer.Interval) {
			select {
			case runs <- true:
			default:
			}
		})
	}()
	select {
	case <-runs:
	case <-over:
		t.Fatal("the first test did not run")
	}
	if got := run("-n 1K -b 1M"); !strings.Contains(got, "busy") {
		t.Errorf("during a running test: %q", got)
	}
	stop()
	<-over
	for deadline := time.Now().Add(20 * time.Second); run("-n 1K -b 1M") != ""; {
		if time.Now().After(deadline) {
			t.Fatal("busy for ever")
		}
	}
}
