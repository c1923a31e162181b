//go:build linux

package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// peers is a program with both ends of several kinds of traffic: MODE is what the client
// does, HOW what the server does. It stands for programs that know nothing of fullpipe.
const peers = `
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

// watched runs the peers in a lab and answers what a fullpipe command says at the near end
// while the client runs.
func watched(t *testing.T, profile, server, client, command string, env ...string) []byte {
	t.Helper()
	program, err := fullpipe()
	if err != nil {
		t.Fatal(err)
	}
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip(err)
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "peers.py")
	if err := os.WriteFile(file, []byte(peers), 0o600); err != nil {
		t.Fatal(err)
	}
	script := `until $PYTHON -c 'import os, socket
socket.create_connection((os.environ["FULLPIPE_FAR"], 7000)).close()' 2>/dev/null
do sleep 0.1; done
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

type watchedDoc struct {
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

func readWatched(t *testing.T, out []byte) (doc watchedDoc) {
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
	doc.Totals.Sent, doc.Totals.Received = totals.Totals.Sent, totals.Totals.Received
	return doc
}

// TestWhyNamesWhatLimitsARunningProgram asks about programs that run already.
func TestWhyNamesWhatLimitsARunningProgram(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, profile, server, client, target string
		direction                             string
		limiters                              []string // any of them is right
	}{
		{"a full link", "rate=30mbit,rtt=30ms", "drain", "pour", ":7000", "up", []string{"bottleneck"}},
		{"questions and answers", "rate=50mbit,rtt=90ms", "answer", "ask", "python3", "up", []string{"application"}},
		{"an own program that reads slowly", "rate=50mbit,rtt=20ms", "feed", "sip", ":7000", "down",
			[]string{"receiver-application"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			undisturbed(t, func() error {
				doc := readWatched(t, watched(t, c.profile, c.server, c.client,
					"CLIENT & client=$!\nsleep 2\n$F why "+c.target+" --for 5s --json\nkill $client"))
				if len(doc.Connections) == 0 || len(doc.Connections[0].Directions) == 0 {
					return fmt.Errorf("nothing was seen: %+v", doc)
				}
				got := doc.Connections[0]
				d := got.Directions[0]
				if d.Direction != c.direction || !slices.Contains(c.limiters, d.Limiter) || !d.Sampled {
					return fmt.Errorf("%s, %s with %s confidence, %v; want %s %v", d.Direction, d.Limiter, d.Confidence,
						d.Shares, c.direction, c.limiters)
				}
				here := strings.HasPrefix(got.Program, "python") && got.PID != 0
				if !here || !strings.HasSuffix(got.Remote, ":7000") {
					return fmt.Errorf("it is %+v", got)
				}
				return nil
			})
		})
	}
}

// TestWatchCountsShortConnectionsExactly sends known bytes on connections that no dump sees.
func TestWatchCountsShortConnectionsExactly(t *testing.T) {
	t.Parallel()
	doc := readWatched(t, watched(t, "rate=100mbit,rtt=2ms", "drain", "short",
		"$F watch --for 60s --every 1s --port 7000 --json > $PEERS.json & watch=$!\nsleep 2\nCLIENT\nsleep 1\n"+
			"kill -INT $watch\nwait $watch || test $? = 130\ncat $PEERS.json"))
	want := int64(0)
	for i := range 300 {
		want += int64(1000 + i)
	}
	if doc.Totals.Sent != want || doc.Totals.Opened != 300 || doc.Totals.Closed != 300 || doc.LostEnds != 0 ||
		doc.Totals.Unfinished != 0 {
		t.Errorf("%+v, lost %d, want %d bytes on 300 connections", doc.Totals, doc.LostEnds, want)
	}
}

// TestWhyOfNobody says that nothing fits.
func TestWhyOfNobody(t *testing.T) {
	t.Parallel()
	program, err := fullpipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(program, "why", ":1", "--for", "1s").CombinedOutput()
	if err == nil || !strings.Contains(string(out), "no TCP connection of it stands") || !strings.Contains(string(out),
		"try: ") {
		t.Errorf("%v: %s", err, out)
	}
}

// TestWhySaysThatMemoryIsShort shows `why` a table of protocols, as the kernel has it while it is short of
// memory, in place of this one's (net.ipv4.tcp_mem is the whole machine's).
func TestWhySaysThatMemoryIsShort(t *testing.T) {
	t.Parallel()
	needProgram(t, "unshare")
	const short = `CLIENT & client=$!
mkdir $PEERS.net
awk '$1 == "TCP" || $1 == "TCPv6" { $5 = "yes" } { print }' /proc/net/protocols >$PEERS.net/protocols
sleep 1
unshare -m sh -euc 'mount --bind $PEERS.net /proc/$$/net; exec $F why :7000 --for 3s'
kill $client`
	out := string(watched(t, "rate=30mbit,rtt=30ms", "drain", "pour", short))
	if !strings.Contains(out, "the kernel's TCP ran short of memory (net.ipv4.tcp_mem) at the sender 1 time, ") ||
		strings.Contains(out, "high confidence") {
		t.Error(out)
	}
}

// TestWhyOfAUnit asks by the name of a unit: of systemd's, a cgroup's directory is all that is needed.
func TestWhyOfAUnit(t *testing.T) {
	t.Parallel()
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		t.Fatal(err)
	}
	root := ""
	for line := range strings.Lines(string(mounts)) {
		if words := strings.Fields(line); len(words) > 2 && words[2] == "cgroup2" {
			root = words[1]
		}
	}
	unit := fmt.Sprintf("fullpipe-e2e-%d.service", os.Getpid())
	if err := os.Mkdir(filepath.Join(root, unit), 0o755); root == "" || err != nil {
		t.Skipf("no cgroup can be made: %v", err)
	}
	t.Cleanup(func() { os.Remove(filepath.Join(root, unit)) })
	doc := readWatched(t, watched(t, "rate=30mbit,rtt=30ms", "drain", "pour",
		`sh -c 'echo $$ >$GROUP/cgroup.procs; exec CLIENT' & client=$!
sleep 1
$F why $UNIT --for 2s --json
kill $client; wait $client || true`, "UNIT="+unit, "GROUP="+filepath.Join(root, unit)))
	if len(doc.Connections) != 1 || doc.Connections[0].Unit != unit || len(doc.Connections[0].Directions) == 0 {
		t.Errorf("%+v", doc.Connections)
	}
}
