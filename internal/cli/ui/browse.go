package ui

import (
	"errors"
	"fmt"
	"html"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"

	"github.com/fullpipe-net/fullpipe/internal/atomicfile"
	"github.com/fullpipe-net/fullpipe/internal/secret"
)

// browse opens an address with a secret in the user's browser. Every user of a host can read the arguments of programs,
// so the browser gets a private file that redirects there; done removes it.
func browse(address string) (done func(), err error) {
	program, args, err := opener()
	if err != nil {
		return func() {}, err
	}
	dir, done, err := atomicfile.TempDir("fullpipe-ui-")
	if err != nil {
		return done, err
	}
	file := filepath.Join(dir, "open.html")
	page := fmt.Sprintf(`<!doctype html><meta charset="utf-8"><meta name="referrer" content="no-referrer">`+
		`<meta http-equiv="refresh" content="0; url=%[1]s"><a href="%[1]s">to the page</a>`, html.EscapeString(address))
	if err := atomicfile.WriteNew(file, []byte(page)); err != nil {
		return done, err
	}
	cmd := exec.Command(program, append(args, file)...)
	cmd.Env = secret.Without(os.Environ())
	if err := cmd.Start(); err != nil {
		return done, err
	}
	go cmd.Wait() //nolint:errcheck // it lives as long as it likes
	return done, nil
}

// opener is the program that opens files as the desktop does.
func opener() (program string, args []string, err error) {
	switch {
	case runtime.GOOS == "darwin":
		return "open", nil, nil
	case runtime.GOOS == "windows":
		return "rundll32", []string{"url.dll,FileProtocolHandler"}, nil
	case os.Geteuid() == 0:
		return "", nil, errors.New("a browser should not run as root; open the address as a user")
	case os.Getenv("DISPLAY") == "" && os.Getenv("WAYLAND_DISPLAY") == "":
		return "", nil, errors.New("there is no desktop here; open the address elsewhere, as through ssh -L")
	}
	program, err = exec.LookPath("xdg-open")
	return program, nil, err
}
