package testenv

import (
	"fmt"
	"os"
)

// OwnState lets the commands of a package's tests keep their state in a new directory, and not in that of the user who
// runs the tests. TestMain calls it, and remove after the tests. A test that sets FULLPIPE_STATE has its own.
func OwnState() (remove func()) {
	dir, err := os.MkdirTemp("", "fullpipe-state")
	if err == nil {
		err = os.Setenv("XDG_STATE_HOME", dir)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	return func() { os.RemoveAll(dir) }
}
