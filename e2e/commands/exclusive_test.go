//go:build linux

package commands

import (
	"bytes"
	"encoding/json"
	"io"
	"net"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fullpipe-net/fullpipe/e2e/harness"
	"github.com/fullpipe-net/fullpipe/internal/testenv"
)

// serving runs `fullpipe serve --json` with more arguments and returns its first line.
func serving(t *testing.T, args ...string) (ready struct {
	Listen, Key string
	Addresses   []string
}) {
	t.Helper()
	program := harness.Program(t)
	server := exec.Command(program, append([]string{"serve", "--json"}, args...)...)
	out, err := server.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Process.Kill(); server.Wait() })
	if err := json.NewDecoder(out).Decode(&ready); err != nil {
		t.Fatal(err)
	}
	go io.Copy(io.Discard, out)
	return ready
}

// measuring is a started `fullpipe measure` with its standard error.
type measuring struct {
	*exec.Cmd
	said bytes.Buffer
}

func measures(t *testing.T, peer, key string, args ...string) *measuring {
	t.Helper()
	program := harness.Program(t)
	m := &measuring{Cmd: exec.CommandContext(t.Context(), program, append([]string{"measure", peer, "--key", key,
		"--no-history"}, args...)...)}
	m.Stderr = &m.said
	if err := m.Start(); err != nil {
		t.Fatal(err)
	}
	return m
}

// TestExclusiveServer checks that a second client is shown its place in the queue, and that both measure. An iperf3
// client that comes meanwhile gets "the server is busy", and is served once the server is free.
func TestExclusiveServer(t *testing.T) {
	t.Parallel()
	real := testenv.Program(t, testenv.Iperf3)
	ready := serving(t, "--exclusive", "--iperf3", "--listen", "127.0.0.1:0")
	_, port, err := net.SplitHostPort(ready.Listen)
	if err != nil {
		t.Fatal(err)
	}
	iperf3 := func() string {
		out, _ := exec.CommandContext(t.Context(), real, "-c", "127.0.0.1", "-p", port, "-n", "100K", "-J").Output()
		var doc harness.Iperf3Output
		if err := json.Unmarshal(out, &doc); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return doc.Error
	}
	if said := iperf3(); said != "" {
		t.Errorf("alone: %s", said)
	}
	all := []*measuring{measures(t, ready.Listen, ready.Key, "-t", "2s"), measures(t, ready.Listen, ready.Key, "-t", "2s")}
	busy := false
	for range 100 {
		if busy = strings.Contains(iperf3(), "busy"); busy {
			break
		}
	}
	if !busy {
		t.Error("an iperf3 client was served while another client had the turn")
	}
	waited := 0
	for _, m := range all {
		if err := m.Wait(); err != nil {
			t.Errorf("%v: %s", err, m.said.String())
		}
		if strings.Contains(m.said.String(), "place 1 in its queue") {
			waited++
		}
	}
	if waited == 0 { // both do where an iperf3 client has the turn
		t.Errorf("neither waited: %s%s", all[0].said.String(), all[1].said.String())
	}
}

// TestServeReportsAddresses checks that a client can connect to each address of the ready line, and that none is a
// name.
func TestServeReportsAddresses(t *testing.T) {
	t.Parallel()
	ready := serving(t, "--listen", ":0")
	if len(ready.Addresses) == 0 {
		t.Fatal("no addresses")
	}
	for _, address := range ready.Addresses {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			t.Errorf("%s: %v", address, err)
			continue
		}
		conn.Close()
	}
	if m := measures(t, ready.Addresses[0], ready.Key, "--bytes", "1MB"); m.Wait() != nil {
		t.Errorf("%s: %s", ready.Addresses[0], m.said.String())
	}
}

// TestKeysHaveBounds checks that a key's own rate and bytes are enforced while another key has no limits.
func TestKeysHaveBounds(t *testing.T) {
	t.Parallel()
	program := harness.Program(t)
	file := filepath.Join(t.TempDir(), "keys")
	made := func(args ...string) string {
		out, err := exec.CommandContext(t.Context(), program, append(append([]string{"key", "new"}, args...), "--keys",
			file)...).Output()
		if err != nil {
			t.Fatalf("%v: %v", args, err)
		}
		return strings.TrimSpace(string(out))
	}
	slow, small, free := made("slow", "--max-rate", "8mbit"), made("small", "--max-bytes", "1MB"), made("free")
	ready := serving(t, "--listen", "127.0.0.1:0", "--keys", file)
	for _, c := range []struct {
		name, key, args string
		refused         string // the limit that the refusal names; "": no refusal
	}{
		{"slow within", slow, "-t 500ms --write-rate 4mbit", ""},
		{"slow down", slow, "-t 500ms --write-rate 4mbit -R", ""},
		{"slow beyond", slow, "-t 500ms --write-rate 9mbit", "rate"},
		{"slow unbounded", slow, "-t 500ms", "rate"},
		{"slow by two streams", slow, "-t 500ms --write-rate 5mbit -P 2", "rate"},
		{"small within", small, "--bytes 900kB", ""},
		{"small beyond", small, "--bytes 2MB", "bytes"},
		{"free", free, "--bytes 2MB", ""},
	} {
		m := measures(t, ready.Listen, c.key, strings.Fields(c.args)...)
		err := m.Wait()
		if said := strings.ToLower(m.said.String()); (err != nil) != (c.refused != "") || !strings.Contains(said, c.refused) {
			t.Errorf("%s: %v: %s", c.name, err, said)
		}
	}
}
