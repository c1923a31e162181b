//go:build linux

package interop

import (
	"bufio"
	"errors"
	"net"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/peer"
	"github.com/fullpipe-net/fullpipe/internal/testenv"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// iperf2Server runs Debian's iperf as a server until the test ends. It returns a line of the server's report for each
// connection.
func iperf2Server(t *testing.T) (address string, reports chan []string) {
	t.Helper()
	program := testenv.Program(t, testenv.Iperf2)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address = l.Addr().String()
	_, port, _ := net.SplitHostPort(address)
	l.Close()
	server := exec.CommandContext(t.Context(), program, "-s", "-B", "127.0.0.1", "-p", port, "-y", "C")
	out, err := server.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	reports = make(chan []string, 64)
	read := make(chan struct{})
	go func() {
		defer close(read)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			select {
			case reports <- strings.Split(lines.Text(), ","):
			default: // of connections that nobody asks about
			}
		}
	}()
	t.Cleanup(func() { server.Process.Kill(); <-read; server.Wait() })
	for until := time.Now().Add(10 * time.Second); ; {
		if c, err := net.Dial("tcp", address); err == nil {
			c.Close()
			break
		} else if time.Now().After(until) {
			t.Fatal(err)
		}
		<-time.After(10 * time.Millisecond)
	}
	return address, reports
}

// countedThere returns the sum of the server's reports, once it is as much as expected or no more reports come. A
// connection without a byte may have no report.
func countedThere(t *testing.T, reports chan []string, expected int64) (total int64) {
	t.Helper()
	for total < expected {
		select {
		case fields := <-reports:
			if len(fields) < 9 {
				t.Fatalf("the server reports %q", fields)
			}
			n, err := strconv.ParseInt(fields[7], 10, 64)
			if err != nil {
				t.Fatalf("the server reports %q", fields)
			}
			if sum := fields[5] == "-1"; !sum {
				total += n
			}
		case <-time.After(20 * time.Second):
			return total
		}
	}
	return total
}

// TestOurClientOnARealIperf2Server runs small and long transfers to a real iperf 2: our byte count is the server's.
// The server (2.1.8) takes the four bytes that announce no header as a header and does not count them.
func TestOurClientOnARealIperf2Server(t *testing.T) {
	for _, spec := range []transfer.Spec{
		{Bytes: 1}, {Bytes: 100_000}, {Bytes: 400_000_000}, {Bytes: 30_000_000, Streams: 3},
		{Time: 1200 * time.Millisecond},
		{Bytes: 5_000_000, Near: transfer.Socket{SendBuffer: 64 << 10, MSS: 1000, NoDelay: true, Congestion: "reno"},
			Program: transfer.Program{WriteBytes: 1000}},
	} {
		spec.Direction = transfer.Up
		address, reports := iperf2Server(t)
		far, err := peer.Open(t.Context(), "iperf2://"+address, peer.Options{})
		if err != nil {
			t.Fatal(err)
		}
		r, err := transfer.Run(t.Context(), far, spec, nil)
		if err != nil {
			t.Fatal(err)
		}
		span, ok := r.Received()
		if came := countedThere(t, reports, span.Bytes); !ok || came != span.Bytes || spec.Bytes > 0 &&
			span.Bytes != spec.Bytes {
			t.Errorf("%+v: the server counted %d bytes, we %d (of %d)", spec, came, span.Bytes, spec.Bytes)
		}
		if r.Far != nil || !r.Complete {
			t.Errorf("%+v: far end %v, complete %v", spec, r.Far, r.Complete)
		}
		var no *transfer.Unsupported
		if err := far.Check(transfer.TCP(transfer.Spec{Direction: transfer.Down, Time: time.Second})); !errors.As(err, &no) {
			t.Errorf("a sink that sends: %v", err)
		}
		far.Close()
	}
}
