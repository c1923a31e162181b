package peer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"time"
)

// plainArgument is what every shell that an sshd starts takes as one word between double
// quotes: flags, sysctls' and routes' names.
var plainArgument = regexp.MustCompile(`^[A-Za-z0-9._:/ -]+$`)

const (
	// copying is how long a command there may take after logging in, a copy of the program included.
	copying = time.Minute
	// mostDocument bounds what a command there prints, bytes: a host's settings are some 50 kB.
	mostDocument = 1 << 20
)

// RunThere has the fullpipe at an ssh far end, or with o.Copy this one, run with arguments and
// standard input, through the user's own ssh. The error says that it could not be run; an
// exit status above 0 is one only where nothing came on standard output.
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
	remote := "fullpipe" + words.String()
	input := io.Reader(bytes.NewReader(stdin))
	if o.Copy {
		program, err := os.Executable()
		if err != nil {
			return nil, err
		}
		if err := target.sameSystem(ctx); err != nil {
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
		remote = copied(info.Size(), words.String())
		input = io.MultiReader(f, input)
	}
	cmd := target.command(nil, remote)
	cmd.Stdin = input
	stdout, says, err := runBounded(ctx, cmd, usualSSH.toLogIn()+copying, mostDocument)
	var exit *exec.ExitError
	if errors.As(err, &exit) && len(stdout) > 0 {
		return stdout, nil
	}
	if err != nil {
		return nil, &SSHError{target.host, fmt.Errorf("fullpipe%s: %w: %s", words.String(), err, says.last()),
			"fullpipe on the PATH there, or --copy"}
	}
	return stdout, nil
}
