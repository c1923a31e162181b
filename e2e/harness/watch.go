//go:build linux

package harness

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/testenv"
)

// PeersScript is a Python program with both ends of several kinds of traffic: MODE selects the client's behaviour,
// HOW the server's. It represents programs that do not know fullpipe.
const PeersScript = `
import os, socket, sys, time
if sys.argv[1] == "serve":
    s = socket.create_server(("0.0.0.0", 7000), backlog=64)
    while True:
        c, _ = s.accept()
        if os.fork() == 0:
            n, how = 0, sys.argv[2]
            while how == "feed":
                c.sendall(b"x" * 65536)
            while True:
                d = c.recv(20000)
                if not d: break
                n += len(d)
                while how == "answer" and n >= 32768:
                    n -= 32768; c.sendall(b"k" * 100)
            os._exit(0)
        c.close()
how = sys.argv[2]
def connect(): return socket.create_connection((os.environ["FULLPIPE_FAR"], 7000))
if how == "short":
    for i in range(300):
        c = connect(); c.sendall(b"x" * (1000 + i)); c.shutdown(socket.SHUT_WR); c.recv(1); c.close()
    sys.exit()
c, end = connect(), time.time() + 20
while time.time() < end:
    if how == "ask": c.sendall(b"x" * 32768); c.recv(100)
    if how == "pour": c.sendall(b"x" * 65536)
    if how == "sip": c.recv(20000); time.sleep(0.02)
`

// RunWatched runs PeersScript in a lab and returns the output of a fullpipe command at the near end. CLIENT in the
// command is replaced by the client. The shell functions `moving` and `watching` wait until the client has moved 10
// kB, and until a watch hears of closed connections.
func RunWatched(t *testing.T, profile, server, client, command string, env ...string) []byte {
	t.Helper()
	program := Program(t)
	testenv.Need(t, testenv.SS)
	python := testenv.Program(t, testenv.Python)
	dir := t.TempDir()
	file := filepath.Join(dir, "peers.py")
	if err := os.WriteFile(file, []byte(PeersScript), 0o600); err != nil {
		t.Fatal(err)
	}
	script := `until $PYTHON -c 'import os, socket
socket.create_connection((os.environ["FULLPIPE_FAR"], 7000)).close()' 2>/dev/null
do sleep 0.1; done
moving() { until ss -Htin state established '( dport = :7000 )' | grep -qE 'bytes_(sent|received):[0-9]{5}'; do sleep 0.05; done; }
watching() { until awk '$2 == 4 && $4 !~ /^0+$/ { found = 1 } END { exit !found }' /proc/net/netlink; do sleep 0.05; done; }
` + strings.ReplaceAll(command, "CLIENT", "$PYTHON $PEERS client "+client)
	cmd := exec.Command(program, "lab", profile, "--far", python+" "+file+" serve "+server, "--", "sh", "-euc", script)
	cmd.Env = append(append(os.Environ(), "F="+program, "PYTHON="+python, "PEERS="+file), env...)
	var failed strings.Builder
	cmd.Stderr = &failed
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s%s", err, out, failed.String())
	}
	return out
}

// WatchReport is the part of `watch --json` and `why --json` that the tests read.
type WatchReport struct {
	Matching    int
	Totals      struct{ Sent, Received, Opened, Closed, Unfinished int64 }
	LostEnds    int64 `json:"lost_ends"`
	Connections []struct {
		Program, Unit, Local, Remote string
		PID                          int
		Directions                   []struct {
			Direction, Limiter, Subtype, Confidence string
			Bytes                                   int64
			Candidates                              []string
			Sampled                                 bool
			Shares                                  map[string]float64
		}
	}
}

// ReadWatch parses a WatchReport.
func ReadWatch(t *testing.T, out []byte) (doc WatchReport) {
	t.Helper()
	var totals struct {
		Totals struct {
			Sent     int64 `json:"sent_bytes"`
			Received int64 `json:"received_bytes"`
		}
	}
	if err := json.Unmarshal(out, &doc); err != nil {
		t.Fatalf("%v in %s", err, out)
	}
	if err := json.Unmarshal(out, &totals); err != nil {
		t.Fatal(err)
	}
	doc.Totals.Sent = totals.Totals.Sent
	doc.Totals.Received = totals.Totals.Received
	return doc
}
