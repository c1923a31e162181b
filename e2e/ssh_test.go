//go:build linux

package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// needProgram finds a program that a test needs; where CI runs, it must be there.
func needProgram(t *testing.T, names ...string) string {
	t.Helper()
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	if os.Getenv("CI") != "" {
		t.Fatalf("%s is not installed", names[0])
	}
	t.Skipf("%s is not installed", names[0])
	return ""
}

// sshSite is a real sshd on a loopback port, and a client's configuration for it.
type sshSite struct {
	dir string
	env []string // PATH with an ssh that takes the configuration
}

// sshFiles are what sshd and ssh need for this very user; the far end's PATH is dir/far
// and the system's, its TMPDIR dir/tmp. Started with dir/sshd.conf, it listens at host.
func sshFiles(t *testing.T, host string, port int) (s *sshSite, sshd string) {
	t.Helper()
	sshd, keygen, ssh := needProgram(t, "/usr/sbin/sshd", "sshd"), needProgram(t, "ssh-keygen"), needProgram(t, "ssh")
	s = &sshSite{dir: t.TempDir()}
	if os.Getuid() == 0 {
		os.MkdirAll("/run/sshd", 0o755) // sshd's own, made by its service elsewhere
	}
	for _, key := range []string{"host", "user"} {
		if out, err := exec.Command(keygen, "-q", "-t", "ed25519", "-N", "", "-f", s.path(key)).CombinedOutput(); err != nil {
			t.Fatalf("ssh-keygen: %v: %s", err, out)
		}
	}
	public, err := os.ReadFile(s.path("user.pub"))
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"far", "tmp", "near"} {
		os.Mkdir(s.path(dir), 0o755)
	}
	s.write(t, "authorized", string(public), 0o600)
	s.write(t, "sshd.conf", fmt.Sprintf("Port %d\nListenAddress %s\nHostKey %s\nAuthorizedKeysFile %s\nPidFile "+
		"none\nStrictModes no\n"+
		"UsePAM no\nPermitRootLogin yes\nSetEnv PATH=%s:/usr/bin:/bin TMPDIR=%s FULLPIPE_STATE=%s\n", port, host,
		s.path("host"),
		s.path("authorized"), s.path("far"), s.path("tmp"), s.path("state")), 0o600)
	s.write(t, "ssh.conf", fmt.Sprintf("Host stranger\n  IdentitiesOnly yes\n  IdentityFile %[1]s\n  HostName %[2]s\n"+
		"Host blocked\n  HostName 255.255.255.255\n  ProxyCommand ssh -W %[2]s:%[3]d far\nHost behind\n  HostName %[2]s\n  "+
		"ProxyJump jump\n"+
		"Host far jump\n  HostName %[2]s\nHost *\n  Port %[3]d\nHost * !stranger\n  IdentityFile %[4]s\nHost *\n  "+
		"UserKnownHostsFile /dev/null\n"+
		"  StrictHostKeyChecking no\n  BatchMode yes\n  LogLevel ERROR\n", s.path("host"), host, port, s.path("user")), 0o600)
	s.write(t, "near/ssh", "#!/bin/sh\nexec "+ssh+" -F "+s.path("ssh.conf")+" \"$@\"\n", 0o755)
	s.env = append(os.Environ(), "PATH="+s.path("near")+":"+os.Getenv("PATH"), "FULLPIPE_KEY=")
	return s, sshd
}

// newSSHSite is a site with an sshd on a loopback port.
func newSSHSite(t *testing.T) *sshSite {
	t.Helper()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := free.Addr().(*net.TCPAddr).Port
	free.Close()
	s, sshd := sshFiles(t, "127.0.0.1", port)
	server := exec.Command(sshd, "-D", "-e", "-f", s.path("sshd.conf"))
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

func (s *sshSite) path(name string) string { return filepath.Join(s.dir, name) }

func (s *sshSite) write(t *testing.T, name, text string, mode os.FileMode) {
	t.Helper()
	if err := os.WriteFile(s.path(name), []byte(text), mode); err != nil {
		t.Fatal(err)
	}
}

func TestSSH(t *testing.T) {
	t.Parallel()
	program := fullpipeProgram(t)
	site := newSSHSite(t)
	measure := func(args ...string) (doc struct {
		Directions []struct {
			GoodputBps float64 `json:"goodput_bps"`
			Warnings   []string
		}
		Error struct{ Message, Try string }
	}) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), program, append([]string{"measure", "--json", "-t", "200ms", "--write-rate",
			"20mbit"}, args...)...)
		cmd.Env = site.env
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
	if err := os.Link(program, site.path("far/fullpipe")); err != nil {
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

	site.awaitEmpty(t)
}

// awaitEmpty waits until nothing that was copied to the far end is there any more.
func (s *sshSite) awaitEmpty(t *testing.T) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		left, err := os.ReadDir(s.path("tmp"))
		if err != nil || len(left) == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("left behind at the far end: %v", left)
		}
	}
}
