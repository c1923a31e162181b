//go:build linux

package e2e

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// fullpipe is the program, built once for all tests that need it.
var fullpipe = sync.OnceValues(func() (string, error) {
	built = true
	dir, err := os.MkdirTemp("", "fullpipe-e2e")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "fullpipe")
	out, err := exec.Command("go", "build", "-o", path, "github.com/fullpipe-net/fullpipe/cmd/fullpipe").CombinedOutput()
	if err != nil {
		return "", errors.Join(err, errors.New(string(out)))
	}
	return path, nil
})

// built says whether any test asked for the program.
var built bool

// inLab runs a shell script at the near end of a lab; $F is the program. It answers what
// the script printed.
func inLab(t *testing.T, profile, script string) string {
	t.Helper()
	program, err := fullpipe()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	cmd := exec.Command(program, "lab", profile, "--", "sh", "-euc", script)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "F="+program, "FULLPIPE_STATE="+filepath.Join(dir, "state"))
	var failed strings.Builder
	cmd.Stderr = &failed
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s%s", err, out, failed.String())
	}
	return string(out)
}

// sysctls prints every sysctl of the namespace, byte for byte.
const sysctls = `sysctls() { for f in $(find /proc/sys/net -type f | sort); do printf '%s ' "$f"; cat "$f" 2>/dev/null || echo; done; }
`

func TestApplyAndUndoInTheLab(t *testing.T) {
	t.Parallel()
	out := inLab(t, "rate=20mbit,rtt=10ms,stack=linux-6.1", sysctls+`
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
	out := inLab(t, "rate=20mbit,rtt=10ms,stack=linux-6.1", `
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

func TestAuditInTheLabNamesTheStacksCeilings(t *testing.T) {
	t.Parallel()
	out := inLab(t, "rate=20mbit,rtt=10ms,stack=linux-6.1", `
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
	if first := doc.Hosts[0].Findings[0]; first.Grade != "limits" || first.Parameter != "net.ipv4.tcp_wmem" || first.Cost < 5e8 {
		t.Errorf("the dearest finding is %+v", first)
	}
}
