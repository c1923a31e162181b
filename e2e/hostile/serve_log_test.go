//go:build linux

package hostile

import (
	"bufio"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/e2e/harness"
	"github.com/fullpipe-net/fullpipe/internal/probe"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"golang.org/x/sys/unix"
)

// TestServeWithALogThatNobodyReads checks that a server with an unread log admits clients and ends when it is asked
// to, and that one whose reader has gone continues to serve.
func TestServeWithALogThatNobodyReads(t *testing.T) {
	t.Parallel()
	program := harness.Program(t)
	for _, gone := range []bool{false, true} {
		unread, log, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		defer unread.Close()
		if _, err := unix.FcntlInt(log.Fd(), unix.F_SETPIPE_SZ, 4096); err != nil {
			t.Fatal(err)
		}
		key := probe.NewKey()
		server := exec.Command(program, "serve", "--iperf3", "--listen", "127.0.0.1:0")
		server.Env = append(os.Environ(), "FULLPIPE_KEY="+key.String())
		server.Stderr = log
		out, err := server.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := server.Start(); err != nil {
			t.Fatal(err)
		}
		log.Close()
		line, err := bufio.NewReader(out).ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		address := strings.TrimPrefix(strings.TrimSpace(line), "fullpipe listens on ")
		if gone {
			unread.Close()
		}
		run := func() {
			t.Helper()
			client, err := probe.Connect(t.Context(), address, key)
			if err != nil {
				t.Fatalf("reader gone %v: %v", gone, err)
			}
			defer client.Close()
			if _, err := transfer.Run(t.Context(), client, transfer.Spec{Direction: transfer.Up, Bytes: 1000}, nil); err != nil {
				t.Fatalf("reader gone %v: %v", gone, err)
			}
		}
		for range 30 { // three lines each: more than the pipe's capacity
			run()
		}
		strangers(t, address, 200, 20, time.Millisecond)
		run()
		ended := make(chan error, 1)
		server.Process.Signal(syscall.SIGTERM)
		go func() { ended <- server.Wait() }()
		select {
		case err := <-ended:
			if err != nil {
				t.Errorf("reader gone %v: SIGTERM: %v", gone, err)
			}
		case <-time.After(10 * time.Second):
			server.Process.Kill()
			t.Fatalf("reader gone %v: it does not end", gone)
		}
	}
}
