//go:build unix

package host

import (
	"fmt"
	"os"
	"syscall"
)

// trusted returns an error if others than root and this process's user own the path or may write it.
func trusted(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return &StateError{err}
	}
	owner, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case ok && owner.Uid != 0 && int(owner.Uid) != os.Geteuid():
		return &TrustError{path, fmt.Sprintf("it belongs to user %d: this user could make undo write any value", owner.Uid)}
	case !info.IsDir() && !info.Mode().IsRegular():
		return &TrustError{path, "it is no regular file"}
	case info.Mode().Perm()&0o022 != 0:
		return &TrustError{path, fmt.Sprintf("others may write it (mode %04o)", info.Mode().Perm())}
	}
	return nil
}
