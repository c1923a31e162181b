//go:build linux

package kernel

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/e2e/harness"
	"github.com/fullpipe-net/fullpipe/internal/lab"
)

// killingFullpipe replaces fullpipe in the far end's PATH. It runs fullpipe and kills the tune that asks for it at
// one point: before, during or after a command there, or 0.5 s beyond it. %[1]s is the program, %[2]s a directory for
// its files.
const killingFullpipe = `#!/bin/sh
[ "$1" = serve ] && exec %[1]s "$@"
case "$*" in *--dry-run*) command=plan;; *) command=$1;; esac
strike() { if [ "$(cat %[2]s/point)" = "$1 $command" ]; then echo "$1 $command" >>%[2]s/struck; kill -9 -$(cat %[2]s/tune); fi; }
strike before
exec 3<&0
%[1]s "$@" <&3 &
strike during
wait $!
status=$?
strike after
[ $command = apply ] && { sleep 0.5; strike beyond; } <&- >%[2]s/strike 2>&1 3<&- &
exit $status
`

// TestTuneKilled_FarHostIsTakenBack kills tune --apply-far and its ssh at each step on the far host, and checks that
// undo then restores the settings of both hosts.
func TestTuneKilled_FarHostIsTakenBack(t *testing.T) {
	program := harness.Program(t)
	for _, point := range []string{"during audit", "during status", "before plan", "after plan", "before apply",
		"during apply", "after apply", "beyond apply"} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			l, _ := harness.StartLab(t, "rate=20mbit,rtt=10ms")
			site, sshd := harness.NewSSHFiles(t, l.Far.Addr.String(), 22)
			dir := t.TempDir()
			for name, text := range map[string]string{site.Path("far/fullpipe"): fmt.Sprintf(killingFullpipe, program, dir),
				filepath.Join(dir, "point"): point} {
				if err := os.WriteFile(name, []byte(text), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			env := append(site.Env, "FULLPIPE_STATE="+site.Path("state"))
			for e, narrow := range map[*lab.End]string{l.Near: "echo 4096 16384 65536 >/proc/sys/net/ipv4/tcp_wmem",
				l.Far: "echo 4096 8192 8192 >/proc/sys/net/ipv4/tcp_rmem"} {
				if out, err := e.Output("sh", "-c", narrow); err != nil {
					t.Fatalf("%v: %s", err, out)
				}
			}
			settings := func() string { return harness.HostSettings(t, l.Near) + harness.HostSettings(t, l.Far) }
			before := settings()
			far, err := l.Far.Start(lab.Command{Args: []string{sshd, "-D", "-e", "-f", site.Path("sshd.conf")}, Env: env,
				Stderr: os.Stderr, OwnGroup: true})
			if err != nil {
				t.Fatal(err)
			}
			l.Far.AwaitListener(t.Context(), far)
			var says bytes.Buffer
			tune := "echo $$ >" + dir + "/tune; exec " + program + " tune ssh://far --apply --apply-far --yes --budget 2s --json"
			status, err := l.Near.Run(lab.Command{Args: []string{"sh", "-c", tune}, Env: env, OwnGroup: true, Stdout: &says,
				Stderr: &says})
			if struck, _ := os.ReadFile(filepath.Join(dir, "struck")); string(struck) != point+"\n" || err != nil {
				t.Fatalf("status %d, %v, struck %q: %s", status, err, struck, &says)
			}
			awaitNone(t, site.Path("far/fullpipe"))
			if applied := point == "after apply" || point == "beyond apply"; applied && settings() == before {
				t.Error("nothing was changed when it was killed")
			}
			for _, e := range []*lab.End{l.Near, l.Far} {
				if out, err := e.Output("env", "FULLPIPE_STATE="+site.Path("state"), program, "undo"); err != nil {
					t.Errorf("undo: %v: %s", err, out)
				}
			}
			if after := settings(); after != before {
				t.Errorf("after undo the hosts are not as they were:\n%s", harness.AddedLines(before, after))
			}
		})
	}
}

// awaitNone waits until no process runs that was started with a file.
func awaitNone(t *testing.T, file string) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
		if err != nil {
			t.Fatal(err)
		}
		running := ""
		for _, name := range lines {
			if text, err := os.ReadFile(name); err == nil && strings.Contains(string(text), file) {
				running = string(text)
			}
		}
		if running == "" {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%q still runs", running)
		}
	}
}
