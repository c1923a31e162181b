//go:build linux

package commands

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/fullpipe-net/fullpipe/e2e/harness"
	"github.com/fullpipe-net/fullpipe/internal/testenv"
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

// TestApplyDecidesAfterTheAnswer changes the host while apply waits for the user's confirmation: once to more than
// the plan asks for, once to a value that the user was not shown.
func TestApplyDecidesAfterTheAnswer(t *testing.T) {
	t.Parallel()
	testenv.Need(t, testenv.Script)
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

// TestTuneApply_KeepsOnlyAGain applies changes where the far end's window is the limit: a change without a proven gain
// is undone, with a reason.
func TestTuneApply_KeepsOnlyAGain(t *testing.T) {
	t.Parallel()
	doc := harness.TuneApplyUndo(t, "131072", "65536", "")
	a := doc.Directions[0].Applied // nil: the send buffer is large enough for that window
	if a != nil && (a.Kept && (a.Gain.CI95 == nil || a.Gain.CI95[0] <= 1) || !a.Kept && a.Reason == "") {
		t.Errorf("%+v, gain %+v", a, a.Gain)
	}
}

func TestTuneApplyCutShortLeavesNothing(t *testing.T) {
	for _, signal := range []string{"INT", "KILL"} {
		t.Run(signal, func(t *testing.T) {
			t.Parallel()
			harness.TuneApplyUndo(t, "65536", "6291456", "timeout -s "+signal+" 8")
		})
	}
}
