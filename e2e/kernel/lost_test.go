//go:build linux

package kernel

import (
	"encoding/json"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"github.com/fullpipe-net/fullpipe/e2e/harness"
	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/testenv"
)

// TestMeasureNamesPlacesOfLoss drops packets on the lab's wire and at the receiver's firewall, with and without a far
// end that watches. The lab's namespaces are two hosts: nothing but the link joins them.
func TestMeasureNamesPlacesOfLoss(t *testing.T) {
	t.Parallel()
	testenv.Need(t, testenv.Root, testenv.BPF, testenv.NFT)
	const (
		path     = "rate=100mbit,rtt=10ms,queue=2bdp"
		firewall = "nft 'add table inet t; add chain inet t c { type filter hook input priority 0; }; " +
			"add rule inet t c tcp dport 5201 meta length > 1000 numgen inc mod 100 < 1 drop'; "
		serve = "exec $F serve --quiet"
	)
	// The privileges of a container without tracing.
	const countersOnly = "setpriv --bounding-set -bpf,-perfmon,-sys_admin "
	for _, tt := range []struct {
		name, path, far            string
		place, side, watched, text string // of the most bytes
	}{
		{"the receiver's firewall, by counters", path, strings.Replace(firewall, "1 drop", "1 counter drop", 1) +
			strings.Replace(serve, "exec ", "exec "+countersOnly, 1) + " --drops=auto", "firewall", record.ReceiverHost,
			record.ReceiverHost, "the receiver's firewall (nftables counter): "},
		{"the receiver's firewall", path, firewall + serve + " --drops", "firewall", record.ReceiverHost, record.BothHosts,
			"the receiver's firewall (NETFILTER_DROP, input hook): "},
		{"the receiver's firewall, not watched", path, firewall + serve, record.Elsewhere, "", record.SenderHost,
			"not dropped on this host"},
		{"the wire", path + ",loss=0.5%", serve + " --drops", record.BetweenHosts, "", record.BothHosts,
			"between the hosts"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cmd := exec.Command(harness.Program(t), "lab", tt.path, "--far", "sh -euc \"$FAR\"", "--", "sh", "-euc",
				"$F measure $FULLPIPE_FAR --bytes 3MB --json --fail-on lost-at:sender-host,lost-at:$PLACE > m.json || "+
					"test $? = 3; cat m.json; $F show m.json >&2")
			cmd.Dir = t.TempDir()
			asked := strings.Replace(tt.place, record.Elsewhere, record.ReceiverHost, 1)
			cmd.Env = append(os.Environ(), "F="+harness.Program(t), "FAR="+tt.far, "PLACE="+asked,
				"FULLPIPE_KEY="+harness.TuneKey)
			var text strings.Builder
			cmd.Stderr = &text
			out, err := cmd.Output()
			var doc record.Measure
			if err != nil || json.Unmarshal(out, &doc) != nil || len(doc.Directions) != 1 {
				t.Fatalf("%v: %s%s", err, out, text.String())
			}
			all := doc.Directions[0].LostAt
			if len(all) == 0 {
				t.Fatalf("no place of loss: %s", text.String())
			}
			if len(doc.Criteria) != 1 || doc.Criteria[0].Passed {
				t.Errorf("--fail-on: %+v", doc.Criteria)
			}
			l := all[0]
			if l.Place != tt.place || l.Side != tt.side || l.Watched != tt.watched || l.Share == nil || *l.Share < 0.8 {
				t.Errorf("%+v: %s", l, text.String())
			}
			if !strings.Contains(text.String(), tt.text) {
				t.Errorf("no %q: %s", tt.text, text.String())
			}
			for _, other := range all[1:] { // a busy host may fill its own queues, and retransmits needlessly
				t.Logf("%+v", other)
			}
		})
	}
}

// TestMeasureReleasesProgramsOnInterrupt counts the eBPF programs of a measurement before and after SIGINT.
func TestMeasureReleasesProgramsOnInterrupt(t *testing.T) {
	t.Parallel()
	testenv.Need(t, testenv.Root, testenv.BPF)
	if !testenv.Inside(t, unix.CLONE_NEWNET) {
		return
	}
	program := harness.Program(t)
	env := append(os.Environ(), "FULLPIPE_KEY="+harness.TuneKey)
	serve := exec.Command(program, "serve", "--drops", "--json")
	serve.Env = env
	ready, err := serve.StdoutPipe()
	if err == nil {
		err = serve.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ready.Read(make([]byte, 4096)); err != nil { // the ready line
		t.Fatal(err)
	}
	measure := exec.Command(program, "measure", "127.0.0.1", "--time", "60s")
	measure.Env = env
	if err := measure.Start(); err != nil {
		t.Fatal(err)
	}
	for _, cmd := range []*exec.Cmd{measure, serve} {
		var ids []ebpf.ProgramID
		end := time.Now().Add(20 * time.Second)
		for ; len(ids) < 2 && time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
			ids = programsOf(t, cmd.Process.Pid)
		}
		_ = cmd.Process.Signal(unix.SIGINT)
		_ = cmd.Wait() // the status of an interrupted command
		if len(ids) != 2 {
			t.Errorf("%v has %d programs, want 2", cmd.Args, len(ids))
		}
		for _, id := range ids {
			for end := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
				p, err := ebpf.NewProgramFromID(id)
				if err != nil {
					break
				}
				p.Close()
				if time.Now().After(end) {
					t.Errorf("program %d of %v is still loaded", id, cmd.Args)
					break
				}
			}
		}
	}
}

// programsOf returns the eBPF programs that a process has open.
func programsOf(t *testing.T, pid int) (ids []ebpf.ProgramID) {
	t.Helper()
	out, _ := exec.Command("sh", "-c", "cat /proc/$0/fdinfo/*", strconv.Itoa(pid)).Output() // some close meanwhile
	for line := range strings.Lines(string(out)) {
		if text, is := strings.CutPrefix(line, "prog_id:"); is {
			id, err := strconv.ParseUint(strings.TrimSpace(text), 10, 32)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Contains(ids, ebpf.ProgramID(id)) { // a link has its program's id too
				ids = append(ids, ebpf.ProgramID(id))
			}
		}
	}
	return ids
}
