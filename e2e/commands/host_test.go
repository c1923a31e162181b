//go:build linux

package commands

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fullpipe-net/fullpipe/e2e/harness"
	"github.com/fullpipe-net/fullpipe/internal/lab/still"
)

func TestApplyAndUndoInTheLab(t *testing.T) {
	t.Parallel()
	out := harness.RunInLab(t, "rate=20mbit,rtt=10ms,stack=linux-6.1", harness.SysctlFunction+`
sysctls > before
$F plan --rate 1gbit --rtt 100ms --json > plan.json
$F apply --dry-run plan.json > dry
sysctls | cmp - before
$F apply --yes --json plan.json > applied.json
! sysctls | cmp -s - before
$F status --json > status.json
$F undo --json > undone.json
sysctls | cmp - before
$F status
cat status.json
`)
	var status struct {
		Settings []struct{ Name, Is string }
	}
	text, found := strings.CutPrefix(out, "fullpipe has changed nothing here\n")
	if err := json.Unmarshal([]byte(text), &status); err != nil || !found {
		t.Fatalf("%v in %s", err, out)
	}
	if len(status.Settings) != 2 || status.Settings[0].Is != "ours" || status.Settings[0].Name != "net.ipv4.tcp_rmem" {
		t.Errorf("status after apply: %+v", status)
	}
}

func TestUndoInTheLabLeavesALaterChange(t *testing.T) {
	t.Parallel()
	out := harness.RunInLab(t, "rate=20mbit,rtt=10ms,stack=linux-6.1", `
$F plan --rate 1gbit --rtt 100ms --json | $F apply --yes - > /dev/null
echo 4096 131072 7000000 > /proc/sys/net/ipv4/tcp_rmem
$F undo > undone || echo "status $?"
cat /proc/sys/net/ipv4/tcp_rmem /proc/sys/net/ipv4/tcp_wmem
$F undo --forget net.ipv4.tcp_rmem
$F status
`)
	want := "status 3\n4096\t131072\t7000000\n4096\t16384\t4194304\nfullpipe has changed nothing here\n"
	if out != want {
		t.Errorf("got %q, want %q", out, want)
	}
}

// TestApplyDecidesAfterTheAnswer changes the host while apply waits for a person: once to
// more than the plan asks for, once to something that the person was not shown.
func TestApplyDecidesAfterTheAnswer(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("script"); err != nil {
		t.Skip(err)
	}
	out := harness.RunInLab(t, "rate=20mbit,rtt=10ms,stack=linux-6.1", `
$F plan --rate 1gbit --rtt 100ms --json > plan.json
ask() { # VALUE: what tcp_rmem becomes before the answer
	rm -f in out; mkfifo in; : > out
	script -qefc "$F apply plan.json; echo status \$?" out < in > /dev/null 2>&1 &
	exec 9> in
	until grep -q 'make these changes' out; do sleep 0.05; done
	echo "$1" > /proc/sys/net/ipv4/tcp_rmem
	printf 'y\n' >&9
	exec 9>&-
	wait $!
	grep -o 'status [0-9]' out
	grep -o 'nothing was changed: net.ipv4.tcp_rmem was' out || :
	cat /proc/sys/net/ipv4/tcp_rmem
	$F undo > /dev/null
}
ask '4096 131072 536870912'
echo 4096 131072 6291456 > /proc/sys/net/ipv4/tcp_rmem
ask '8192 131072 6291456'
`)
	want := "status 0\n4096\t131072\t536870912\nstatus 1\nnothing was changed: net.ipv4.tcp_rmem " +
		"was\n8192\t131072\t6291456\n"
	if out != want {
		t.Errorf("got %q, want %q", out, want)
	}
}

func TestAuditInTheLabNamesTheStacksCeilings(t *testing.T) {
	t.Parallel()
	out := harness.RunInLab(t, "rate=20mbit,rtt=10ms,stack=linux-6.1", `
$F audit --rate 1gbit --rtt 100ms --json > found.json || test $? = 3
cat found.json
`)
	var doc struct {
		Hosts []struct {
			Findings []struct {
				Grade, Parameter string
				Cost             float64 `json:"cost_bps"`
			}
		}
	}
	if err := json.Unmarshal([]byte(out), &doc); err != nil || len(doc.Hosts) != 1 || len(doc.Hosts[0].Findings) < 2 {
		t.Fatalf("%v in %s", err, out)
	}
	if first := doc.Hosts[0].Findings[0]; first.Grade != "limits" || first.Parameter != "net.ipv4.tcp_wmem" ||
		first.Cost < 5e8 {
		t.Errorf("the dearest finding is %+v", first)
	}
}

// applied runs tune --apply with these ceilings at both ends, then undo, and demands that
// every sysctl of the near end is as it was. end is what happens to the running tune.
func applied(t *testing.T, wmem, rmem, end string) (doc struct {
	Applied    bool
	Directions []struct {
		Applied *struct {
			Kept   bool
			Reason string
			Gain   struct{ Factor float64 }
		}
	}
}) {
	t.Helper()
	program := harness.Program(t)
	dir := t.TempDir()
	far := "echo 4096 65536 " + rmem + " > /proc/sys/net/ipv4/tcp_rmem; exec $F serve --quiet"
	script := harness.SysctlFunction + `
echo 4096 16384 ` + wmem + ` > /proc/sys/net/ipv4/tcp_wmem
sysctls > before
status=0
` + end + ` $F tune $FULLPIPE_FAR --apply --yes --budget 6s --json > tuned.json 2> notes || status=$?
$F undo > undone
sysctls | cmp - before || { cat tuned.json notes undone; exit 1; }
test "$($F status)" = "fullpipe has changed nothing here"
echo $status
`
	cmd := exec.Command(program, "lab", "rate=20mbit,rtt=60ms", "--far", far, "--", "sh", "-euc", script)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "F="+program, "FULLPIPE_STATE="+filepath.Join(dir, "state"),
		"FULLPIPE_KEY="+harness.TuneKey)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	text, err := os.ReadFile(filepath.Join(dir, "tuned.json"))
	if err != nil {
		t.Fatal(err)
	}
	if end == "" {
		if err := json.Unmarshal(text, &doc); err != nil || len(doc.Directions) != 1 {
			t.Fatalf("%v in %s", err, text)
		}
		want := []string{"0"}
		switch a := doc.Directions[0].Applied; {
		case a == nil: // nothing to apply: something else may help, or nothing
			want = []string{"0", "3"}
		case !doc.Applied:
			want = []string{"3"}
		}
		if lines := strings.Fields(string(out)); !slices.Contains(want, lines[len(lines)-1]) {
			t.Errorf("exit status %s, applied %v", lines[len(lines)-1], doc.Applied)
		}
	}
	return doc
}

func TestTuneApplyKeepsAGainAndUndoTakesItBack(t *testing.T) {
	t.Parallel()
	still.Undisturbed(t, func() error {
		a := applied(t, "65536", "6291456", "").Directions[0].Applied
		return harness.ErrorUnless(a != nil && a.Kept && a.Gain.Factor > 1.5, "a send buffer of 64 KiB for 150 kB: %+v", a)
	})
}

func TestTuneApplyTakesBackWhatDoesNotHelp(t *testing.T) {
	t.Parallel()
	doc := applied(t, "131072", "65536", "")
	// Nothing to apply is right as well: the send buffer is large enough for that window.
	if a := doc.Directions[0].Applied; a != nil && (a.Kept || a.Reason == "") {
		t.Errorf("the far end's window is the limit, yet: %+v", a)
	}
}

func TestTuneApplyCutShortLeavesNothing(t *testing.T) {
	for _, signal := range []string{"INT", "KILL"} {
		t.Run(signal, func(t *testing.T) {
			t.Parallel()
			applied(t, "65536", "6291456", "timeout -s "+signal+" 8")
		})
	}
}
