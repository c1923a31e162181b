//go:build linux

package kernel

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/fullpipe-net/fullpipe/e2e/harness"
	"github.com/fullpipe-net/fullpipe/internal/lab"
)

// TestTuneAppliesAtBothEnds raises the maxima of both hosts, through the lab and through ssh, where only both
// together help, and undo restores both.
func TestTuneAppliesAtBothEnds(t *testing.T) {
	program := harness.Program(t)
	for _, way := range []string{"lab", "ssh"} {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			l, _ := harness.StartLab(t, "rate=20mbit,rtt=60ms")
			env := []string{"FULLPIPE_KEY=" + harness.TuneKey, "FULLPIPE_STATE=" + t.TempDir()}
			peer, serve := "fullpipe://"+l.Far.Addr.String(), []string{program, "serve", "--quiet"}
			if way == "ssh" {
				site, sshd := harness.NewSSHFiles(t, l.Far.Addr.String(), 22)
				if err := os.Link(program, site.Path("far/fullpipe")); err != nil {
					t.Fatal(err)
				}
				peer, serve = "ssh://far", []string{sshd, "-D", "-e", "-f", site.Path("sshd.conf")}
				env = append(site.Env, "FULLPIPE_STATE="+site.Path("state"))
			}
			for e, narrow := range map[*lab.End]string{l.Near: "echo 4096 16384 65536 >/proc/sys/net/ipv4/tcp_wmem",
				l.Far: "echo 4096 65536 65536 >/proc/sys/net/ipv4/tcp_rmem"} {
				if out, err := e.Output("sh", "-c", narrow); err != nil {
					t.Fatalf("%v: %s", err, out)
				}
			}
			before := harness.HostSettings(t, l.Near) + harness.HostSettings(t, l.Far)
			far, err := l.Far.Start(lab.Command{Args: serve, Env: env, Stderr: os.Stderr, OwnGroup: true})
			if err != nil {
				t.Fatal(err)
			}
			l.Far.AwaitListener(t.Context(), far)
			var out, says bytes.Buffer
			status, err := l.Near.Run(lab.Command{Args: []string{program, "tune", peer, "--apply", "--apply-far", "--yes",
				"--budget", "6s", "--json"}, Env: env, Stdout: &out, Stderr: &says})
			var doc struct {
				Applied    bool
				Directions []struct {
					Applied *struct {
						Kept   bool
						Gain   struct{ Factor float64 }
						Far    []struct{ Name, Outcome string } `json:"far_changes"`
						Reason string
					}
				}
			}
			if err != nil || json.Unmarshal(out.Bytes(), &doc) != nil || len(doc.Directions) != 1 ||
				doc.Directions[0].Applied == nil {
				t.Fatalf("%d, %v: %s%s", status, err, out.String(), says.String())
			}
			// Each of the two windows of 64 KiB reduces 150 kB in flight to less than a half.
			if a := doc.Directions[0].Applied; !a.Kept || status != 0 || len(a.Far) != 1 || a.Far[0].Outcome != "changed" ||
				a.Gain.Factor < 1.3 {
				account, _ := l.Lateness()
				if account.Believable() {
					t.Errorf("status %d: %+v", status, a)
				}
				t.Logf("a late lab: %+v, %+v", a, account)
			}
			if now := harness.HostSettings(t, l.Near) + harness.HostSettings(t, l.Far); doc.Applied == (now == before) {
				t.Errorf("applied %v, and both hosts as before %v", doc.Applied, now == before)
			}
			for _, e := range []*lab.End{l.Near, l.Far} {
				if status, err := e.Run(lab.Command{Args: []string{program, "undo"}, Env: env}); err != nil || status != 0 {
					t.Errorf("undo: %d, %v", status, err)
				}
			}
			if after := harness.HostSettings(t, l.Near) + harness.HostSettings(t, l.Far); after != before {
				t.Errorf("after undo the hosts are not as they were:\n%s", harness.AddedLines(before, after))
			}
		})
	}
}

// serve never changes its host: without ssh or a lab --apply-far is refused.
func TestApplyFarNeedsSSH(t *testing.T) {
	t.Parallel()
	out := harness.RunInLab(t, "rate=20mbit,rtt=10ms", `unset FULLPIPE_LAB_ACCOUNT
$F tune 127.0.0.1 --apply-far --yes 2>&1 || echo status $?`)
	if !strings.Contains(out, "ssh://") || !strings.HasSuffix(out, "status 2\n") {
		t.Error(out)
	}
}
