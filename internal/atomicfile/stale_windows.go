package atomicfile

import (
	"errors"
	"io/fs"
	"os"

	"golang.org/x/sys/windows"
)

// markUsed does nothing: an open file cannot be removed on Windows.
func markUsed(*os.File) {}

// unused reports whether the process in a temporary file's name has ended.
func unused(_ string, pid int) bool {
	h, err := windows.OpenProcess(windows.PROCESS_QUERY_LIMITED_INFORMATION, false, uint32(pid))
	if err == nil {
		windows.CloseHandle(h)
	}
	return errors.Is(err, windows.ERROR_INVALID_PARAMETER)
}

// isOurs returns true: Windows checks the permission itself.
func isOurs(fs.FileInfo) bool { return true }
