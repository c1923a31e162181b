//go:build linux

package bench

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fullpipe-net/fullpipe/e2e/harness"
	printed "github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/render/text"
)

// slowRequests is a cause of slow requests. Its two programs are python scripts of requestProgram.
type slowRequests struct {
	name string
	link string // settings after the path
	// server and client are statements for each request; connect opens the client's connection s.
	server, connect, client string
	concurrent              string // a shell command of the client's host, concurrent with the requests
	causes                  []string
	states                  []string // of samples, as right as a cause
	filler                  string   // the program to name
	target                  string   // of why; "": the client's program
}

// requestProgram has the names that the statements of slowRequests use.
const requestProgram = `
import os, socket, sys, time
def get(c, n):
    while n > 0:
        b = c.recv(min(n, 65536))
        if not b: sys.exit()
        n -= len(b)
def dial():
    c = socket.create_connection((os.environ['FULLPIPE_FAR'], 8080))
    c.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return c
`

const (
	oneResponse  = "get(c, 200); c.sendall(b'x' * 400)"
	longResponse = "get(c, 200); c.sendall(b'x' * 60000)"
	oneRequest   = "s.sendall(b'r' * 200); get(s, 400); time.sleep(0.01)"
	longRequest  = "s.sendall(b'r' * 200); get(s, 60000); time.sleep(0.01)"
)

// slowRequestCauses are the twelve causes.
var slowRequestCauses = []slowRequests{
	{name: "response lost", link: "down.loss=4%", causes: []string{"tail-loss-probe", "timeout"}, states: []string{"peer"}},
	{name: "request lost", link: "up.loss=4%", causes: []string{"tail-loss-probe", "timeout"}, states: []string{"timer"}},
	{name: "segment of a long response lost", link: "down.loss=0.5%", server: longResponse, client: longRequest,
		causes: []string{"fast-retransmit", "tail-loss-probe", "timeout"}},
	{name: "SYN lost", link: "up.loss=8%", connect: "pass", client: "s = dial(); " + oneRequest + "; s.close()",
		causes: []string{"lost-syn", "tail-loss-probe", "timeout"}, states: []string{"timer"}, target: ":8080"},
	{name: "delayed ACK against Nagle", connect: "s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 0)",
		server: "get(c, 400); c.sendall(b'x' * 400)",
		client: "s.sendall(b'r' * 200); s.sendall(b'r' * 200); get(s, 400); time.sleep(0.01)",
		causes: []string{"delayed-ack", "nagle"}},
	{name: "slow server", server: "get(c, 200); time.sleep(0.1); c.sendall(b'x' * 400)", causes: []string{"server"},
		states: []string{"peer"}},
	{name: "slow reader of responses", server: "get(c, 200); c.sendall(b'x' * 300000)",
		connect: "s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 16384)",
		client:  "s.sendall(b'r' * 200)\nfor i in range(30): get(s, 10000); time.sleep(0.02)",
		causes:  []string{"zero-window", "receive-window", "window-probe"}},
	{name: "slow client", client: "s.sendall(b'r' * 100); time.sleep(0.1); s.sendall(b'r' * 100); get(s, 400)",
		causes: []string{"client"}, states: []string{"program"}},
	{name: "own queue", link: "down.rate=4mbit,queue=500packets", server: "get(c, 200); c.sendall(b'x' * 200000)",
		client: "s.sendall(b'r' * 200); get(s, 200000)", causes: []string{"queue", "wire"}},
	{name: "another program's queue", link: "up.rate=10mbit,queue=300packets", concurrent: "iperf3 -c $FULLPIPE_FAR -t 30",
		causes: []string{"queue"}, filler: "iperf3"},
	{name: "slow start after idle", server: longResponse, client: "s.sendall(b'r' * 200); get(s, 60000); time.sleep(0.7)",
		causes: []string{"rounds"}},
	{name: "zero window of the server", server: "time.sleep(0.3); get(c, 300000); c.sendall(b'x' * 400)",
		client: "s.sendall(b'r' * 300000); get(s, 400)",
		causes: []string{"zero-window", "receive-window", "window-probe", "server"}, // which sleeps
		states: []string{"zero-window"}},
}

// slowRequestPaths are the paths of the bank.
var slowRequestPaths = []string{"rate=100mbit,rtt=6ms", "rate=50mbit,rtt=40ms", "rate=20mbit,rtt=120ms"}

// TestBankWhyRequests asks `why` at the client's host, 10 s each, with eBPF and without. -run
// 'TestBankWhyRequests/PATH/CAUSE/eBPF' picks cells.
func TestBankWhyRequests(t *testing.T) {
	bankOnly(t)
	program := harness.Program(t)
	ways := []string{"eBPF", "samples"}
	var right, sure [2]among
	var not [2][]string
	for _, path := range slowRequestPaths {
		for i := range slowRequestCauses {
			c := &slowRequestCauses[i]
			for way, name := range ways {
				t.Run(fmt.Sprintf("%s/%s/%s", path, c.name, name), func(t *testing.T) {
					how := c.judged(t, c.why(t, program, path, way == 1))
					right[way].count(how == rightVerdict)
					sure[way].count(how != wrongVerdict)
					if how != rightVerdict {
						not[way] = append(not[way], c.name+": "+how)
					}
				})
			}
		}
	}
	for way, least := range []float64{33. / 36, 22. / 36} {
		row := bankRow{Section: "requests", Case: "why at the client: 12 causes, 3 paths, by " + ways[way],
			Claim: fmt.Sprintf("right in %.0f %%", 100*least), Measured: right[way].String(),
			Spread: right[way].interval() + "; " + strings.Join(together(not[way]), "; "), Verdict: right[way].verdict(least),
			Command: "make bank RUN=TestBankWhyRequests"}
		record(t, row)
		row.Claim = "never another cause"
		row.Measured = sure[way].String()
		row.Verdict = passed(sure[way].good == sure[way].all)
		record(t, row)
	}
}

// why returns the document of `why` about the client.
func (c *slowRequests) why(t *testing.T, program, path string, withoutBPF bool) *printed.Watch {
	t.Helper()
	dir := t.TempDir()
	or := func(a, b string) string {
		if a == "" {
			return b
		}
		return a
	}
	server := requestProgram + `l = socket.create_server(('', 8080))
while True:
    c, _ = l.accept()
    c.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if os.fork() == 0:
        while True:
            ` + or(c.server, oneResponse) + "\n"
	client := requestProgram + "s = dial()\n" + or(c.connect, "pass") + "\nwhile True:\n    " +
		strings.ReplaceAll(or(c.client, oneRequest), "\n", "\n    ") + "\n"
	for name, code := range map[string]string{"server.py": server, "client.py": client} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(code), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	drop := ""
	if withoutBPF {
		drop = countersOnly
	}
	near := "sleep 1; " + drop + "python3 $D/client.py & sleep 1; "
	if c.concurrent != "" {
		near += c.concurrent + " >/dev/null & sleep 2; "
	}
	near += drop + "$F why " + or(c.target, "client.py") + " --for 10s --json; kill $(jobs -p) 2>/dev/null; true"
	link := path
	if c.link != "" {
		link += "," + c.link
	}
	cmd := exec.Command(program, "lab", link, "--far", "iperf3 -s >/dev/null & exec python3 $D/server.py", "--", "sh",
		"-c", near)
	cmd.Env = append(os.Environ(), "F="+program, "D="+dir)
	var failed strings.Builder
	cmd.Stderr = &failed
	out, err := cmd.Output()
	doc := &printed.Watch{}
	if json.Unmarshal(out, doc) != nil {
		t.Fatalf("%v: %s", err, failed.String())
	}
	return doc
}

// judged returns the relation of the document to the truth. A cause is named where the text names it; of samples, which
// name states, the longest one that is known.
func (c *slowRequests) judged(t *testing.T, d *printed.Watch) string {
	t.Helper()
	r := d.Requests
	if r == nil {
		t.Log("no requests")
		return nothingVerdict
	}
	if f := r.QueueFilledBy; f != nil || c.filler != "" {
		t.Logf("filler %+v", f)
		switch {
		case f == nil && r.Turns == nil:
			return openVerdict
		case f != nil && f.Program == c.filler:
			return rightVerdict
		}
		return wrongVerdict
	}
	if s := r.Sampled; s != nil {
		t.Logf("%+v", *s)
		longest := ""
		most := 0.05 * s.SpanS
		for name, seconds := range map[string]float64{"timer": s.TimerS, "zero-window": s.ZeroWindowS, "peer": s.PeerS,
			"program": s.ProgramS} {
			if seconds > most {
				longest = name
				most = seconds
			}
		}
		if slices.Contains(c.states, longest) {
			return rightVerdict
		}
		return openVerdict // states are facts, no causes
	}
	causes := text.RequestCauses(&r.Requests)
	t.Logf("%v: %s", causes, text.RequestsAnswer(&r.Requests))
	switch {
	case slices.ContainsFunc(causes, func(cause string) bool { return slices.Contains(c.causes, cause) }):
		return rightVerdict
	case slices.Equal(causes, []string{"propagation"}), slices.Contains(causes, "unknown"):
		return openVerdict
	}
	return wrongVerdict
}
