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

func TestSSH(t *testing.T) {
	t.Parallel()
	program := harness.Program(t)
	site := newSSHSite(t)
	measure := func(args ...string) (doc struct {
		Directions []struct {
			GoodputBps float64 `json:"goodput_bps"`
			Warnings   []string
		}
		Error struct{ Message, Try string }
	}) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), program, append([]string{"measure", "--json", "--bytes", "500kB",
			"--write-rate", "20mbit"}, args...)...)
		cmd.Env = site.Env
		out, err := cmd.Output()
		if jerr := json.Unmarshal(out, &doc); jerr != nil {
			t.Fatalf("%v: %v: %s", args, err, out)
		}
		return doc
	}
	fails := func(want, try string, args ...string) {
		t.Helper()
		if doc := measure(args...); !strings.Contains(doc.Error.Message, want) || !strings.Contains(doc.Error.Try, try) {
			t.Errorf("%v: %+v; want %q and %q", args, doc.Error, want, try)
		}
	}
	works := func(args ...string) {
		t.Helper()
		if doc := measure(args...); len(doc.Directions) != 1 || doc.Directions[0].GoodputBps <= 0 {
			t.Errorf("%v: %+v", args, doc)
		} else if through := len(doc.Directions[0].Warnings) > 0; through != (args[0] == "--tunnel") {
			t.Errorf("%v: warnings %q", args, doc.Directions[0].Warnings)
		}
	}
	fails("no fullpipe", "--copy", "ssh://far")
	works("--copy", "ssh://far")
	if err := os.Link(program, site.Path("far/fullpipe")); err != nil {
		t.Fatal(err)
	}
	works("ssh://far")
	works("-d", "down", "ssh://far")
	works("--tunnel", "ssh://far")
	works("--tunnel", "ssh://blocked")
	fails("cannot be reached from here", "--tunnel", "ssh://blocked")
	fails("Permission denied", "by hand", "ssh://stranger")
	fails("refused", "by hand", "ssh://far:1")
	fails("ssh's own connection", "", "--tunnel", "--receive-buffer", "64KiB", "ssh://far")

	site.AwaitEmpty(t)
}
