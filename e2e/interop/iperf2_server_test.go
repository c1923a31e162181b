//go:build linux

package interop

import (
	"bytes"
	"context"
	"net"
	"net/netip"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/iperf2"
	"github.com/fullpipe-net/fullpipe/internal/testenv"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// iperf2Client runs Debian's iperf as a client and returns its comma-separated lines.
func iperf2Client(t *testing.T, server netip.AddrPort, args ...string) [][]string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	args = append([]string{"-c", server.Addr().String(), "-p", strconv.Itoa(int(server.Port())), "-y", "C"}, args...)
	client := exec.CommandContext(ctx, testenv.Program(t, testenv.Iperf2), args...)
	out, err := client.Output()
	if err != nil {
		t.Fatalf("iperf %v: %v: %s", args, err, out)
	}
	var lines [][]string
	for line := range strings.Lines(string(out)) {
		lines = append(lines, strings.Split(strings.TrimSpace(line), ","))
	}
	return lines
}

// TestRealIperf2ClientsOnOurServer checks that Debian's iperf and our server count the same bytes and datagrams.
func TestRealIperf2ClientsOnOurServer(t *testing.T) {
	testenv.Need(t, testenv.Iperf2)
	l, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	address := netip.MustParseAddrPort(l.Addr().String())
	udp, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(address))
	if err != nil {
		t.Fatal(err)
	}
	reports := make(chan iperf2.Report, 16)
	ctx, cancel := context.WithCancel(context.Background())
	var serving sync.WaitGroup
	serving.Go(func() { (&iperf2.Server{Report: func(r iperf2.Report) { reports <- r }}).Serve(ctx, l, udp) })
	t.Cleanup(func() { cancel(); serving.Wait() })

	// A sending client prints the bytes that it wrote, a receiving one those that it read: field 8 of a line.
	for _, c := range []struct {
		name    string
		args    []string
		streams int
		want    transfer.Direction
	}{
		{"bytes", []string{"-n", "1000000"}, 1, transfer.Down},
		{"time", []string{"-t", "0.5"}, 1, transfer.Down},
		{"parallel", []string{"-t", "0.5", "-P", "3"}, 3, transfer.Down},
		{"reverse", []string{"-t", "0.5", "-R"}, 1, transfer.Up},
		{"reverse bytes", []string{"-n", "1000000", "-R"}, 1, transfer.Up},
		{"full duplex is received only", []string{"-t", "0.5", "--full-duplex"}, 1, transfer.Down},
	} {
		var printed, counted int64
		for _, fields := range iperf2Client(t, address, c.args...) {
			if len(fields) < 9 {
				t.Fatalf("%s: the client prints %q", c.name, fields)
			}
			n, err := strconv.ParseInt(fields[7], 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			if sum := fields[5] == "-1"; !sum {
				printed += n
			}
		}
		for range c.streams {
			r := <-reports
			if r.Err != nil || r.TCP == nil || r.TCP.Spec.Direction != c.want {
				t.Fatalf("%s: %+v", c.name, r)
			}
			span, _ := r.TCP.Received()
			counted += span.Bytes
		}
		if counted == 0 || counted != printed && c.name != "full duplex is received only" {
			t.Errorf("%s: the client counted %d bytes, our server %d", c.name, printed, counted)
		}
	}

	ctx, stop := context.WithTimeout(t.Context(), 20*time.Second)
	defer stop()
	client := exec.CommandContext(ctx, testenv.Program(t, testenv.Iperf2), "-c", address.Addr().String(), "-p",
		strconv.Itoa(int(address.Port())), "-u", "-b", "5m", "-t", "0.5")
	out, err := client.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	r := <-reports
	if r.Err != nil || r.Datagrams == nil || !r.Datagrams.Complete {
		t.Fatalf("UDP: %+v", r)
	}
	_, report, found := bytes.Cut(out, []byte("Server Report"))
	want := " " + strconv.FormatInt(r.Datagrams.Lost, 10) + "/" + strconv.FormatInt(r.Datagrams.Sent, 10) + " "
	if !found || !bytes.Contains(report, []byte(want)) {
		t.Errorf("the client does not print %q:\n%s", want, out)
	}
}
