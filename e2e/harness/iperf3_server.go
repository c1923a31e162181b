//go:build linux

package harness

import (
	"bufio"
	"context"
	"net"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/iperf3"
	"github.com/fullpipe-net/fullpipe/internal/probe"
	"github.com/fullpipe-net/fullpipe/internal/server"
	"github.com/fullpipe-net/fullpipe/internal/socket"
	"github.com/fullpipe-net/fullpipe/internal/testenv"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// StartIperf3Server starts iperf3 -s on a free port of the loopback interface and returns once it listens.
func StartIperf3Server(t *testing.T, args ...string) (address string) {
	t.Helper()
	program := testenv.Program(t, testenv.Iperf3)
	port := FreePort(t)
	address = net.JoinHostPort("127.0.0.1", port)
	cmd := exec.Command(program, append([]string{"-s", "-p", port, "--forceflush"}, args...)...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if strings.Contains(lines.Text(), "listening") {
			go func() {
				for lines.Scan() {
				}
			}()
			return address
		}
	}
	t.Fatal("iperf3 -s did not come up")
	return ""
}

// Iperf3ServerSpecs returns the transfers that fullpipe's client may request of an iperf3 server.
func Iperf3ServerSpecs() map[string]transfer.Spec {
	up := transfer.Up
	down := transfer.Down
	paced := transfer.Program{WriteBytes: 4000, WriteBps: 8e6}
	return map[string]transfer.Spec{
		"bytes up":            {Direction: up, Bytes: 1 << 20},
		"bytes down":          {Direction: down, Bytes: 1 << 20},
		"time up":             {Direction: up, Time: 300 * time.Millisecond, Program: paced},
		"time down":           {Direction: down, Time: 300 * time.Millisecond, Program: paced},
		"parallel up":         {Direction: up, Bytes: 2 << 20, Streams: 4},
		"parallel down":       {Direction: down, Bytes: 2 << 20, Streams: 4},
		"far window up":       {Direction: up, Bytes: 1 << 20, Far: transfer.Socket{ReceiveBuffer: 32768}},
		"far window down":     {Direction: down, Bytes: 1 << 20, Far: transfer.Socket{SendBuffer: 32768}},
		"near window down":    {Direction: down, Bytes: 1 << 20, Near: transfer.Socket{ReceiveBuffer: 16384}},
		"far reno down":       {Direction: down, Bytes: 1 << 20, Far: transfer.Socket{Congestion: "reno"}},
		"far segment size up": {Direction: up, Bytes: 1 << 20, Far: transfer.Socket{MSS: 1000}},
		"far pacing down":     {Direction: down, Bytes: 200 << 10, Far: transfer.Socket{PacingBps: 16e6}},
		"far no delay down":   {Direction: down, Bytes: 1 << 20, Far: transfer.Socket{NoDelay: true}},
	}
}

// FreePort returns a free port.
func FreePort(t *testing.T) string {
	t.Helper()
	return strconv.Itoa(testenv.FreePort(t, 1))
}

// ServeIperf3 runs fullpipe's server for iperf3 clients in this process until the test ends.
func ServeIperf3(t *testing.T, address string, reports chan iperf3.Report) (port int) {
	t.Helper()
	return serveIperf3Limit(t, address, reports, 0)
}

// serveIperf3Limit is ServeIperf3 with a limit of simultaneous tests; 0 is the default.
func serveIperf3Limit(t *testing.T, address string, reports chan iperf3.Report, tests int) (port int) {
	t.Helper()
	clients := &iperf3.Server{UDP: true, MaxTests: tests, MaxTestsPerHost: tests,
		Report: func(r iperf3.Report) { reports <- r }}
	config := server.Config{Address: address, Key: probe.NewKey(), AllowUnauthenticated: true, ShareWindows: true,
		Iperf3: func(ctx context.Context, conn *net.TCPConn, preface probe.Preface, order int64, keyed bool) {
			clients.Handle(ctx, conn, iperf3.Cookie(preface), order, keyed)
		}}
	var s *server.Server
	var flows *net.UDPConn
	for range 5 { // the port that was chosen for TCP can be taken for UDP
		var err error
		if s, err = server.New(t.Context(), config); err != nil {
			t.Fatal(err)
		}
		if flows, err = socket.ListenFlows(t.Context(), s.Addr().String()); err == nil {
			break
		}
		s.Close()
	}
	if flows == nil {
		t.Fatal("no port is free for TCP and UDP")
	}
	clients.Window = s.Window
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { s.Serve(ctx) })
	running.Go(func() { clients.ServeDatagrams(flows) })
	t.Cleanup(func() { cancel(); flows.Close(); running.Wait() })
	return int(s.Addr().Port())
}
