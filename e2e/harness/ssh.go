//go:build linux

package harness

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/testenv"
)

// SSHSite is an sshd on the loopback interface and a client configuration for it.
type SSHSite struct {
	dir string
	Env []string // PATH with an ssh that takes the configuration
}

// NewSSHFiles writes what sshd and ssh need for this user. The far end's PATH is dir/far and the system's, its
// TMPDIR is dir/tmp. The caller starts sshd with dir/sshd.conf; it listens at host.
func NewSSHFiles(t *testing.T, host string, port int) (s *SSHSite, sshd string) {
	t.Helper()
	sshd = testenv.Program(t, testenv.SSHD)
	keygen := testenv.Program(t, testenv.SSHKeygen)
	ssh := testenv.Program(t, testenv.SSH)
	s = &SSHSite{dir: t.TempDir()}
	if os.Getuid() == 0 {
		os.MkdirAll("/run/sshd", 0o755) // sshd's own, made by its service elsewhere
	}
	for _, key := range []string{"host", "user"} {
		if out, err := exec.Command(keygen, "-q", "-t", "ed25519", "-N", "", "-f", s.Path(key)).CombinedOutput(); err != nil {
			t.Fatalf("ssh-keygen: %v: %s", err, out)
		}
	}
	public, err := os.ReadFile(s.Path("user.pub"))
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"far", "tmp", "near"} {
		os.Mkdir(s.Path(dir), 0o755)
	}
	s.write(t, "authorized", string(public), 0o600)
	s.write(t, "sshd.conf", fmt.Sprintf("Port %d\nListenAddress %s\nHostKey %s\nAuthorizedKeysFile %s\nPidFile "+
		"none\nStrictModes no\n"+
		"UsePAM no\nPermitRootLogin yes\nSetEnv PATH=%s:/usr/bin:/bin TMPDIR=%s FULLPIPE_STATE=%s\n", port, host,
		s.Path("host"),
		s.Path("authorized"), s.Path("far"), s.Path("tmp"), s.Path("state")), 0o600)
	s.write(t, "ssh.conf", fmt.Sprintf("Host stranger\n  IdentitiesOnly yes\n  IdentityFile %[1]s\n  HostName %[2]s\n"+
		"Host blocked\n  HostName 255.255.255.255\n  ProxyCommand ssh -W %[2]s:%[3]d far\nHost behind\n  HostName %[2]s\n  "+
		"ProxyJump jump\n"+
		"Host far jump\n  HostName %[2]s\nHost *\n  Port %[3]d\nHost * !stranger\n  IdentityFile %[4]s\nHost *\n  "+
		"UserKnownHostsFile /dev/null\n"+
		"  StrictHostKeyChecking no\n  BatchMode yes\n  LogLevel ERROR\n", s.Path("host"), host, port, s.Path("user")), 0o600)
	s.write(t, "near/ssh", "#!/bin/sh\nexec "+ssh+" -F "+s.Path("ssh.conf")+" \"$@\"\n", 0o755)
	s.Env = append(os.Environ(), "PATH="+s.Path("near")+":"+os.Getenv("PATH"), "FULLPIPE_KEY=")
	return s, sshd
}

// Path returns the path of a file of the site.
func (s *SSHSite) Path(name string) string { return filepath.Join(s.dir, name) }

func (s *SSHSite) write(t *testing.T, name, text string, mode os.FileMode) {
	t.Helper()
	if err := os.WriteFile(s.Path(name), []byte(text), mode); err != nil {
		t.Fatal(err)
	}
}

// AwaitEmpty waits until nothing that was copied to the far end is left.
func (s *SSHSite) AwaitEmpty(t *testing.T) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		left, err := os.ReadDir(s.Path("tmp"))
		if err != nil || len(left) == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("left behind at the far end: %v", left)
		}
	}
}
