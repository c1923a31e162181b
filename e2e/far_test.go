//go:build linux

package e2e

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/lab"
)

// settingsOf are all settings of a lab's host that tune may change: sysctls, routes and
// queues, without queues' handles.
func settingsOf(t *testing.T, e *lab.End) string {
	t.Helper()
	out, err := e.Output("sh", "-c", sysctls+`sysctls; ip -j route; ip -6 -j route; tc -j qdisc | sed 's/"handle":"[^"]*",//g'`)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// TestTuneAppliesAtBothEnds raises the ceilings of both hosts, through the lab and through
// ssh, where only both together help, and undo takes both back.
func TestTuneAppliesAtBothEnds(t *testing.T) {
	program := fullpipeProgram(t)
	for _, way := range []string{"lab", "ssh"} {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			l, _ := bench(t, "rate=20mbit,rtt=60ms")
			env := []string{"FULLPIPE_KEY=" + tuneKey, "FULLPIPE_STATE=" + t.TempDir()}
			peer, serve := "fullpipe://"+l.Far.Addr.String(), []string{program, "serve", "--quiet"}
			if way == "ssh" {
				site, sshd := sshFiles(t, l.Far.Addr.String(), 22)
				if err := os.Link(program, site.path("far/fullpipe")); err != nil {
					t.Fatal(err)
				}
				peer, serve = "ssh://far", []string{sshd, "-D", "-e", "-f", site.path("sshd.conf")}
				env = append(site.env, "FULLPIPE_STATE="+site.path("state"))
			}
			for e, narrow := range map[*lab.End]string{l.Near: "echo 4096 16384 65536 >/proc/sys/net/ipv4/tcp_wmem",
				l.Far: "echo 4096 65536 65536 >/proc/sys/net/ipv4/tcp_rmem"} {
				if out, err := e.Output("sh", "-c", narrow); err != nil {
					t.Fatalf("%v: %s", err, out)
				}
			}
			before := settingsOf(t, l.Near) + settingsOf(t, l.Far)
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
			// Each of the two windows of 64 KiB holds 150 kB in flight back to less than a half.
			if a := doc.Directions[0].Applied; !a.Kept || status != 0 || len(a.Far) != 1 || a.Far[0].Outcome != "changed" ||
				a.Gain.Factor < 1.3 {
				account, _ := l.Account()
				if account.Believable() {
					t.Errorf("status %d: %+v", status, a)
				}
				t.Logf("a late lab: %+v, %+v", a, account)
			}
			if now := settingsOf(t, l.Near) + settingsOf(t, l.Far); doc.Applied == (now == before) {
				t.Errorf("applied %v, and both hosts as before %v", doc.Applied, now == before)
			}
			for _, e := range []*lab.End{l.Near, l.Far} {
				if status, err := e.Run(lab.Command{Args: []string{program, "undo"}, Env: env}); err != nil || status != 0 {
					t.Errorf("undo: %d, %v", status, err)
				}
			}
			if after := settingsOf(t, l.Near) + settingsOf(t, l.Far); after != before {
				t.Errorf("after undo the hosts are not as they were:\n%s", differs(before, after))
			}
		})
	}
}

// differs are the lines of after that before has not.
func differs(before, after string) string {
	var lines []string
	for line := range strings.Lines(after) {
		if !strings.Contains(before, line) {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "")
}

// serve never changes its host: without ssh or a lab --apply-far is refused.
func TestApplyFarNeedsSSH(t *testing.T) {
	t.Parallel()
	out := inLab(t, "rate=20mbit,rtt=10ms", `unset FULLPIPE_LAB_ACCOUNT
$F tune 127.0.0.1 --apply-far --yes 2>&1 || echo status $?`)
	if !strings.Contains(out, "ssh://") || !strings.HasSuffix(out, "status 2\n") {
		t.Error(out)
	}
}
