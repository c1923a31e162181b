//go:build linux

package harness

import (
	"encoding/json"
	"math"
	"net"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/iperf3"
	"github.com/fullpipe-net/fullpipe/internal/testenv"
)

// Iperf3Output is the part of `iperf3 -J` that the tests compare.
type Iperf3Output struct {
	Error string
	End   struct {
		Sent         Iperf3Sum `json:"sum_sent"`
		Received     Iperf3Sum `json:"sum_received"`
		SentBack     Iperf3Sum `json:"sum_sent_bidir_reverse"`
		ReceivedBack Iperf3Sum `json:"sum_received_bidir_reverse"`
	}
	Intervals []struct {
		Streams []struct {
			SendWnd int `json:"snd_wnd"`
		}
	}
	ServerOutput string `json:"server_output_text"`
}

// Iperf3Sum is a sum over streams.
type Iperf3Sum struct{ Bytes int64 }

// compareBytes checks that both ends counted the same number of bytes, apart from a share.
func compareBytes(t *testing.T, test string, sent, received int64, slack float64) {
	t.Helper()
	if received <= 0 || math.Abs(float64(sent-received)) > slack*float64(sent) {
		t.Errorf("%s: %d bytes sent, %d received", test, sent, received)
	}
}

// Iperf3ClientCase is one run of an iperf3 client. Slack is the share of bytes by which the ends may differ: data
// in flight at the end of a timed test.
type Iperf3ClientCase struct {
	Name, Args string
	Slack      float64
}

// Iperf3ClientCases returns a case for each client option.
func Iperf3ClientCases() []Iperf3ClientCase {
	return []Iperf3ClientCase{
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

// Run runs the iperf3 client against fullpipe's server and compares what both ends counted.
func (c Iperf3ClientCase) Run(t *testing.T) (sent, received int64) {
	t.Helper()
	program := testenv.Program(t, testenv.Iperf3)
	reports := make(chan iperf3.Report, 1)
	host := "127.0.0.1"
	if strings.HasPrefix(c.Args, "-6") {
		host = "::1"
	}
	port := ServeIperf3(t, net.JoinHostPort(host, "0"), reports)
	args := append([]string{"-c", host, "-p", strconv.Itoa(port), "-J", "--connect-timeout", "5000"},
		strings.Fields(c.Args)...)
	out, err := exec.CommandContext(t.Context(), program, args...).Output()
	if err != nil {
		t.Fatalf("iperf3 %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	if report := <-reports; report.Err != nil {
		t.Errorf("the server: %v", report.Err)
	}
	var client Iperf3Output
	if err := json.Unmarshal(out, &client); err != nil || client.Error != "" {
		t.Fatalf("%v: %s", err, out)
	}
	compareBytes(t, "forth", client.End.Sent.Bytes, client.End.Received.Bytes, c.Slack)
	if strings.Contains(c.Args, "--bidir") {
		compareBytes(t, "back", client.End.SentBack.Bytes, client.End.ReceivedBack.Bytes, c.Slack)
	}
	verdict := "limited by"
	if strings.Contains(c.Args, "-u") {
		verdict = "datagrams lost"
	}
	if strings.Contains(c.Args, "get-server-output") && !strings.Contains(client.ServerOutput, verdict) {
		t.Errorf("server output %q", client.ServerOutput)
	}
	return client.End.Sent.Bytes, client.End.Received.Bytes
}
