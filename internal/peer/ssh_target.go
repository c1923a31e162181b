package peer

import (
	"errors"
	"net/url"
	"os"
	"os/exec"
	"strings"

	"github.com/fullpipe-net/fullpipe/internal/secret"
)

// SSHError reports that a far end could not be started or reached over ssh.
type SSHError struct {
	Host string
	Err  error
	Hint string
}

func (e *SSHError) Error() string { return "ssh " + e.Host + ": " + e.Err.Error() }

func (e *SSHError) Unwrap() error { return e.Err }

// Try returns the suggested action.
func (e *SSHError) Try() string { return e.Hint }

// sshTarget is the target of the system's ssh.
type sshTarget struct {
	host string // [USER@]HOST, as an ssh argument
	port string // "": from ssh's configuration
}

func parseSSH(text string) (sshTarget, error) {
	u, err := url.Parse(text)
	if err != nil {
		return sshTarget{}, errors.New("not ssh://[USER@]HOST[:PORT]")
	}
	t := sshTarget{host: u.Hostname(), port: u.Port()}
	if u.User != nil {
		if _, has := u.User.Password(); has {
			return t, errors.New("a password does not belong here; ssh asks for it, or uses a key")
		}
		t.host = u.User.Username() + "@" + t.host
	}
	switch {
	case u.Hostname() == "":
		return t, errors.New("no host is called that")
	case u.Path != "" && u.Path != "/" || u.RawQuery != "" || u.Fragment != "":
		return t, errors.New("nothing follows the host")
	case strings.HasPrefix(t.host, "-") || strings.ContainsAny(t.host, " \t\n\x00"):
		return t, errors.New("no host is called that")
	}
	return t, nil
}

// command returns the system's ssh with the target and a remote command.
func (t sshTarget) command(options []string, remote ...string) *exec.Cmd {
	args := append([]string{"-T", "-o", "ConnectTimeout=10"}, options...)
	if t.port != "" {
		args = append(args, "-p", t.port)
	}
	cmd := exec.Command("ssh", append(append(args, "--", t.host), remote...)...)
	cmd.Env = secret.Without(os.Environ())
	return cmd
}
