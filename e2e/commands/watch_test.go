//go:build linux

package commands

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/fullpipe-net/fullpipe/e2e/harness"
	"github.com/fullpipe-net/fullpipe/internal/testenv"
)

// TestWhy_FindsARunningProgram checks whose connection it is and that it was judged. Which limiter is right is
// checked on recordings, and live by the bank. The number of samples that a busy machine takes in 3 s is not known;
// internal/watch has the tests that depend on it.
func TestWhy_FindsARunningProgram(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, profile, server, client, target, direction string }{
		{"by port, sending", "rate=30mbit,rtt=30ms", "drain", "pour", ":7000", "up"},
		{"by program, asking", "rate=50mbit,rtt=90ms", "answer", "ask", "python3", "up"},
		{"by port, receiving", "rate=50mbit,rtt=20ms", "feed", "sip", ":7000", "down"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			doc := harness.ReadWatch(t, harness.RunWatched(t, c.profile, c.server, c.client,
				"CLIENT & client=$!\nmoving\n$F why "+c.target+" --for 3s --json\nkill $client"))
			if len(doc.Connections) == 0 || len(doc.Connections[0].Directions) == 0 {
				t.Fatalf("no connection found: %+v", doc)
			}
			got := doc.Connections[0]
			d := got.Directions[0]
			if d.Direction != c.direction || d.Limiter == "" || d.Confidence == "" {
				t.Errorf("%s, limited by %q with confidence %q; want %s", d.Direction, d.Limiter, d.Confidence, c.direction)
			}
			if !strings.HasPrefix(got.Program, "python") || got.PID == 0 || !strings.HasSuffix(got.Remote, ":7000") {
				t.Errorf("program %q, PID %d, remote %q", got.Program, got.PID, got.Remote)
			}
		})
	}
}

// TestWatchCountsShortConnectionsExactly sends known bytes on connections that no dump sees.
func TestWatchCountsShortConnectionsExactly(t *testing.T) {
	t.Parallel()
	doc := harness.ReadWatch(t, harness.RunWatched(t, "rate=100mbit,rtt=2ms", "drain", "short",
		"$F watch --for 10m --every 1s --port 7000 --json > $PEERS.json & watch=$!\nwatching\nsleep 1\nCLIENT\nsleep 1\n"+
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

// TestWhyOfNobody checks the report that no connection matches. In the host's own network namespace any port may have
// one: other tests connect to ports that nobody serves.
func TestWhyOfNobody(t *testing.T) {
	t.Parallel()
	testenv.Need(t, testenv.NetworkNamespace)
	cmd := exec.Command(harness.Program(t), "why", ":1", "--for", "1s")
	cmd.SysProcAttr = testenv.Namespaces(syscall.CLONE_NEWNET)
	out, err := cmd.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "it has no TCP connection") || !strings.Contains(string(out),
		"try: ") {
		t.Errorf("%v: %s", err, out)
	}
}

// TestWhySaysThatMemoryIsShort shows `why` the table of protocols of a kernel that is short of memory in place of
// this one's (net.ipv4.tcp_mem is the whole machine's).
func TestWhySaysThatMemoryIsShort(t *testing.T) {
	t.Parallel()
	testenv.Need(t, testenv.MountNamespace)
	const short = `CLIENT & client=$!
mkdir $PEERS.net
awk '$1 == "TCP" || $1 == "TCPv6" { $5 = "yes" } { print }' /proc/net/protocols >$PEERS.net/protocols
moving
unshare -m sh -euc 'mount --bind $PEERS.net /proc/$$/net; exec $F why :7000 --for 3s'
kill $client`
	out := string(harness.RunWatched(t, "rate=30mbit,rtt=30ms", "drain", "pour", short))
	if !strings.Contains(out, "the kernel's TCP ran short of memory (net.ipv4.tcp_mem) at the sender 1 time, ") ||
		strings.Contains(out, "high confidence") {
		t.Error(out)
	}
}

// TestWhyOfAUnit selects by the name of a unit: a cgroup's directory is enough to represent systemd's.
func TestWhyOfAUnit(t *testing.T) {
	testenv.Need(t, testenv.Cgroup)
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
	if err := os.Mkdir(filepath.Join(root, unit), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.Remove(filepath.Join(root, unit)) })
	doc := harness.ReadWatch(t, harness.RunWatched(t, "rate=30mbit,rtt=30ms", "drain", "pour",
		`sh -c 'echo $$ >$GROUP/cgroup.procs; exec CLIENT' & client=$!
moving
$F why $UNIT --for 2s --json
kill $client; wait $client || true`, "UNIT="+unit, "GROUP="+filepath.Join(root, unit)))
	if len(doc.Connections) != 1 || doc.Connections[0].Unit != unit || len(doc.Connections[0].Directions) == 0 {
		t.Errorf("%+v", doc.Connections)
	}
}
