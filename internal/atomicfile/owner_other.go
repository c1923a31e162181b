//go:build !unix

package atomicfile

import (
	"io/fs"
	"os"
)

// keepOwner does nothing: a file's owner comes from its directory.
func keepOwner(*os.File, fs.FileInfo) error { return nil }
