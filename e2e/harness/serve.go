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
	server := exec.Command(program, "serve", "--iperf3", "--json", "--listen", "127.0.0.1:0")
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
