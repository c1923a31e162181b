package peer

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"time"
)

// plainArgument matches arguments that every sshd shell takes as one word in double quotes: flags, sysctl and
// route names.
var plainArgument = regexp.MustCompile(`^[A-Za-z0-9._:/ -]+$`)

const (
	// maxCommandTime limits a command after login, with a copy of the program.
	maxCommandTime = time.Minute
	// maxDocument limits a command's output, bytes. A host's settings have about 50 kB.
	maxDocument = 1 << 20
	// noSuchCommand is a shell's status for a command that is not there.
	noSuchCommand = 127
)

// RunThere runs fullpipe at an ssh far end, or with o.Copy a copy of this binary, through the user's ssh: the one that
// Open brought there under o.CopyName if it is still there, else one of its own. The error means that it could not
// run. A status above 0 is an error only without standard output.
func RunThere(ctx context.Context, text string, o Options, args []string, stdin []byte) (stdout []byte, err error) {
	target, err := parseSSH(text)
	if err != nil {
		return nil, &BadPeer{text, err.Error(), "ssh://HOST or ssh://USER@HOST:PORT"}
	}
	var words strings.Builder
	for _, a := range args {
		if !plainArgument.MatchString(a) {
			return nil, fmt.Errorf("%q cannot be passed through ssh", a)
		}
		fmt.Fprintf(&words, ` "%s"`, a)
	}
	run := func(remote string, options []string, stdin io.Reader) ([]byte, error) {
		cmd := target.command(options, remote)
		cmd.Stdin = stdin
		out, says, err := runBounded(ctx, cmd, defaultSSHTimeouts.loginTimeout()+maxCommandTime, maxDocument)
		var exit *exec.ExitError
		if errors.As(err, &exit) && len(out) > 0 {
			return out, nil
		}
		if err != nil {
			return nil, &SSHError{target.host, fmt.Errorf("fullpipe%s: %w: %s", words.String(), err, says.last()),
				"fullpipe on the PATH there, or --copy"}
		}
		return out, nil
	}
	if !o.Copy {
		return run("fullpipe"+words.String(), nil, bytes.NewReader(stdin))
	}
	if o.CopyName != "" {
		// Another user can see the name, and could make a directory of that name once this one is gone.
		own := fmt.Sprintf(`d=%s; [ -O "$d" ] || exit %d; exec "$d/fullpipe"%s`, copyDirectory(o.CopyName), noSuchCommand,
			words.String())
		out, err := run(own, nil, bytes.NewReader(stdin))
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.ExitCode() != noSuchCommand {
			return out, err
		}
	}
	if err := target.checkSameSystem(ctx); err != nil {
		return nil, err
	}
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	f, err := os.Open(program)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	return run(copied(info.Size(), rand.Text(), words.String()), compressed, io.MultiReader(f, bytes.NewReader(stdin)))
}
