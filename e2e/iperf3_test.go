//go:build linux

package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"math"
	"net"
	"os"
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
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// needIperf3 finds Debian's program; where CI runs, it must be there.
func needIperf3(t *testing.T) string {
	t.Helper()
	path, err := exec.LookPath("iperf3")
	if err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal("iperf3 is not installed")
		}
		t.Skip("iperf3 is not installed")
	}
	return path
}

// ourServer admits iperf3 clients on a loopback port of its own until the test ends.
func ourServer(t *testing.T, address string, reports chan iperf3.Report) (port int) {
	t.Helper()
	return ourServerFor(t, address, reports, 0)
}

// ourServerFor is ourServer for so many tests at once; 0 is its default.
func ourServerFor(t *testing.T, address string, reports chan iperf3.Report, tests int) (port int) {
	t.Helper()
	clients := &iperf3.Server{UDP: true, MaxTests: tests, MaxTestsPerHost: tests,
		Report: func(r iperf3.Report) { reports <- r }}
	config := server.Config{Address: address, Key: probe.NewKey(), Strangers: true, ShareWindows: true,
		Legacy: func(ctx context.Context, conn *net.TCPConn, preface probe.Preface, order int64, keyed bool) {
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

// iperf3JSON is the part of iperf3 -J that the matrix compares.
type iperf3JSON struct {
	Error string
	End   struct {
		Sent         iperf3Sum `json:"sum_sent"`
		Received     iperf3Sum `json:"sum_received"`
		SentBack     iperf3Sum `json:"sum_sent_bidir_reverse"`
		ReceivedBack iperf3Sum `json:"sum_received_bidir_reverse"`
	}
	Intervals []struct {
		Streams []struct {
			SendWnd int `json:"snd_wnd"`
		}
	}
	ServerOutput string `json:"server_output_text"`
}

type iperf3Sum struct{ Bytes int64 }

// agree compares what the two ends counted.
func agree(t *testing.T, what string, sent, received int64, slack float64) {
	t.Helper()
	if received <= 0 || math.Abs(float64(sent-received)) > slack*float64(sent) {
		t.Errorf("%s: %d bytes sent, %d received", what, sent, received)
	}
}

// clientCase is one run of a real iperf3 client. Slack is the share of bytes by which the
// two ends may differ: data in flight when a timed test ends is nobody's.
type clientCase struct {
	name, args string
	slack      float64
}

// clientCases are all options that iperf3 clients may bring.
func clientCases() []clientCase {
	return []clientCase{
		{"bytes up", "-n 1M", 0},
		{"bytes down", "-n 1M -R", 0},
		{"blocks", "-k 20 -l 64K", 0},
		{"time up", "-t 1 -b 16M", 0.2},
		{"time down", "-t 1 -b 16M -R", 0.2},
		{"both directions", "-t 1 -b 8M --bidir", 0.2},
		{"both directions, parallel", "-t 1 -b 3M --bidir -P 2", 0.2},
		{"parallel", "-n 4M -P 4", 0},
		{"parallel down", "-t 1 -b 4M -P 4 -R", 0.2},
		{"window", "-n 1M -w 32K", 0},
		{"window down", "-n 1M -w 32K -R", 0},
		{"length", "-n 1M -l 1000", 0},
		{"omitted second", "-t 1 -O 1 -b 16M", 0.3},
		{"segment size", "-n 1M -M 1000", 0},
		{"congestion control", "-n 1M -C reno", 0},
		{"congestion control down", "-n 1M -C reno -R", 0},
		{"no delay", "-n 1M -N", 0},
		{"zero copy", "-n 1M -Z", 0},
		{"zero copy down", "-n 1M -Z -R", 0},
		{"traffic class", "-n 1M --dscp 8", 0},
		{"server output", "-n 1M --get-server-output", 0},
		{"UDP up", "-u -t 1 -b 8M -l 1000", 0.1},
		{"UDP down", "-u -t 1 -b 8M -l 1000 -R", 0.3},
		{"UDP both directions", "-u -t 1 -b 4M --bidir", 0.3},
		{"UDP parallel, wide counters", "-u -t 1 -b 2M -P 3 --udp-counters-64bit --get-server-output", 0.1},
		{"UDP bytes, traffic class, window", "-u -n 500K -b 16M --dscp 8 -w 256K", 0.1},
		{"IPv6", "-6 -n 1M", 0},
		{"IPv6 UDP down", "-6 -u -t 1 -b 8M -R", 0.3},
	}
}

// run lets the client measure with our server and compares what the two ends counted.
func (c clientCase) run(t *testing.T) (sent, received int64) {
	t.Helper()
	program := needIperf3(t)
	reports := make(chan iperf3.Report, 1)
	host := "127.0.0.1"
	if strings.HasPrefix(c.args, "-6") {
		host = "::1"
	}
	port := ourServer(t, net.JoinHostPort(host, "0"), reports)
	args := append([]string{"-c", host, "-p", strconv.Itoa(port), "-J", "--connect-timeout", "5000"},
		strings.Fields(c.args)...)
	out, err := exec.CommandContext(t.Context(), program, args...).Output()
	if err != nil {
		t.Fatalf("iperf3 %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	if report := <-reports; report.Err != nil {
		t.Errorf("the server: %v", report.Err)
	}
	var client iperf3JSON
	if err := json.Unmarshal(out, &client); err != nil || client.Error != "" {
		t.Fatalf("%v: %s", err, out)
	}
	agree(t, "forth", client.End.Sent.Bytes, client.End.Received.Bytes, c.slack)
	if strings.Contains(c.args, "--bidir") {
		agree(t, "back", client.End.SentBack.Bytes, client.End.ReceivedBack.Bytes, c.slack)
	}
	verdict := map[bool]string{true: "datagrams lost", false: "limited by"}[strings.Contains(c.args, "-u")]
	if strings.Contains(c.args, "get-server-output") && !strings.Contains(client.ServerOutput, verdict) {
		t.Errorf("server output %q", client.ServerOutput)
	}
	return client.End.Sent.Bytes, client.End.Received.Bytes
}

// Every option that iperf3's clients may bring, one short run each.
func TestRealIperf3ClientsOnOurServer(t *testing.T) {
	for _, c := range clientCases() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.run(t)
		})
	}
}

// A window that is asked for holds from the first segment on, however small, and for
// nobody else's connections.
func TestSmallWindowsHoldOnOurServer(t *testing.T) {
	t.Parallel()
	program := needIperf3(t)
	reports := make(chan iperf3.Report, 4)
	port := strconv.Itoa(ourServer(t, "127.0.0.1:0", reports))
	for _, c := range []struct {
		window     string
		least, top int
	}{{"8K", 4000, 8 << 10}, {"", 60000, 1 << 30}, {"32K", 16000, 32 << 10}} {
		args := []string{"-c", "127.0.0.1", "-p", port, "-J", "-t", "1", "-b", "16M"}
		if c.window != "" {
			args = append(args, "-w", c.window)
		}
		out, err := exec.CommandContext(t.Context(), program, args...).Output()
		var client iperf3JSON
		if err := errors.Join(err, json.Unmarshal(out, &client)); err != nil || len(client.Intervals) == 0 {
			t.Fatalf("%v: %s", err, out)
		}
		if got := client.Intervals[0].Streams[0].SendWnd; got < c.least || got > c.top {
			t.Errorf("-w %s: the server offers a window of %d bytes", c.window, got)
		}
	}
}

// A real client is told in its own words why a server with bounds does not serve it.
func TestRealIperf3ClientsAreToldTheBounds(t *testing.T) {
	t.Parallel()
	client := needIperf3(t)
	program, err := fullpipe()
	if err != nil {
		t.Fatal(err)
	}
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
		var doc iperf3JSON
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
		t.Errorf("beside a running test: %q", got)
	}
	stop()
	<-over
	for deadline := time.Now().Add(20 * time.Second); run("-n 1K -b 1M") != ""; {
		if time.Now().After(deadline) {
			t.Fatal("busy for ever")
		}
	}
}
