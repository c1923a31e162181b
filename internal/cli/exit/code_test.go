package exit

import (
	"bytes"
	"errors"
	"io/fs"
	"net"
	"os"
	"slices"
	"syscall"
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/socket"
	"github.com/fullpipe-net/fullpipe/internal/testenv/must"
)

func TestCodesAreDocumented(t *testing.T) {
	doc := must.Get(os.ReadFile("../../../docs/exit-status.md"))(t)
	for _, c := range append(slices.Clone(codes), codes[0]) {
		if !bytes.Contains(doc, []byte("| `"+c.code+"` |")) {
			t.Errorf("%s is not in docs/exit-status.md", c.code)
		}
	}
	for want, err := range map[string]error{
		"usage": &UsageError{}, "refused": &net.OpError{Err: syscall.ECONNREFUSED}, "not-found": fs.ErrNotExist,
		"failed":        errors.New("x"),
		"not-supported": socket.ErrNotSupported, "no-space": &fs.PathError{Err: syscall.ENOSPC},
		"timeout":       os.ErrDeadlineExceeded,
		"not-permitted": syscall.EACCES,
	} {
		if got := Code(err); got != want {
			t.Errorf("%v: %s, want %s", err, got, want)
		}
	}
}
