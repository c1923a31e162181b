//go:build linux

package interop

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/e2e/harness"
)

// newSSHSite returns a site with an sshd on a loopback port.
func newSSHSite(t *testing.T) *harness.SSHSite {
	t.Helper()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := free.Addr().(*net.TCPAddr).Port
	free.Close()
	s, sshd := harness.NewSSHFiles(t, "127.0.0.1", port)
	server := exec.Command(sshd, "-D", "-e", "-f", s.Path("sshd.conf"))
	var log bytes.Buffer
	server.Stderr = &log
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Process.Kill(); server.Wait() })
	for deadline := time.Now().Add(10 * time.Second); ; {
		conn, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err == nil {
			conn.Close()
			return s
		}
		if time.Now().After(deadline) {
			t.Fatalf("sshd did not come up: %s", log.String())
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// sshCase is a measurement with an ssh far end.
type sshCase struct {
	args       []string
	fails, try string // part of the error and of its remedy; "": it works
}

func TestSSH(t *testing.T) {
	t.Parallel()
	program := harness.Program(t)
	site := newSSHSite(t)
	check := func(t *testing.T, c sshCase) {
		t.Helper()
		args := append([]string{"measure", "--json", "--bytes", "500kB", "--write-rate", "20mbit"}, c.args...)
		cmd := exec.CommandContext(t.Context(), program, args...)
		cmd.Env = site.Env
		out, err := cmd.Output()
		var doc struct {
			Directions []struct {
				GoodputBps float64 `json:"goodput_bps"`
				Warnings   []string
			}
			Error struct{ Message, Try string }
		}
		if jerr := json.Unmarshal(out, &doc); jerr != nil {
			t.Fatalf("%v: %v: %s", c.args, err, out)
		}
		switch {
		case c.fails != "":
			if !strings.Contains(doc.Error.Message, c.fails) || !strings.Contains(doc.Error.Try, c.try) {
				t.Errorf("%v: %+v; want %q and %q", c.args, doc.Error, c.fails, c.try)
			}
		case len(doc.Directions) != 1 || doc.Directions[0].GoodputBps <= 0:
			t.Errorf("%v: %+v", c.args, doc)
		case (len(doc.Directions[0].Warnings) > 0) != (c.args[0] == "--tunnel"):
			t.Errorf("%v: warnings %q", c.args, doc.Directions[0].Warnings)
		}
	}
	check(t, sshCase{[]string{"ssh://far"}, "no fullpipe", "--copy"})
	check(t, sshCase{args: []string{"--copy", "ssh://far"}})
	if err := os.Link(program, site.Path("far/fullpipe")); err != nil {
		t.Fatal(err)
	}
	t.Run("installed", func(t *testing.T) {
		for _, c := range []sshCase{
			{args: []string{"ssh://far"}},
			{args: []string{"-d", "down", "ssh://far"}},
			{args: []string{"--tunnel", "ssh://far"}},
			{args: []string{"--tunnel", "ssh://blocked"}},
			{[]string{"ssh://blocked"}, "cannot be reached from here", "--tunnel"},
			{[]string{"ssh://stranger"}, "Permission denied", "by hand"},
			{[]string{"ssh://far:1"}, "refused", "by hand"},
			{[]string{"--tunnel", "--receive-buffer", "64KiB", "ssh://far"}, "ssh's own connection", ""},
		} {
			t.Run(strings.Join(c.args, " "), func(t *testing.T) {
				t.Parallel()
				check(t, c)
			})
		}
	})
	site.AwaitEmpty(t)
}
