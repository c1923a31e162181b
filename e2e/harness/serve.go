//go:build linux

package harness

import (
	"bufio"
	"encoding/json"
	"io"
	"os/exec"
	"testing"
)

// StartServe starts a program's `serve` on the loopback interface until the test ends and returns its address and
// key.
func StartServe(t *testing.T, program string) (address, key string) {
	t.Helper()
	return StartFarEnd(t, program, "serve", "--iperf3", "--json", "--listen", "127.0.0.1:0")
}

// StartFarEnd starts a server whose first line of output is JSON with its address (listen) and key.
func StartFarEnd(t *testing.T, program string, args ...string) (address, key string) {
	t.Helper()
	server := exec.Command(program, args...)
	out, err := server.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Process.Kill(); server.Wait() })
	var ready struct{ Listen, Key string }
	lines := bufio.NewReader(out)
	line, err := lines.ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, &ready)
	}
	if err != nil {
		t.Fatal(err)
	}
	go io.Copy(io.Discard, lines)
	return ready.Listen, ready.Key
}
