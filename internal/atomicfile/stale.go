package atomicfile

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
)

// maxNames limits the directory entries searched for stale files.
const maxNames = 10_000

// temporaryName matches the names of temporary files; the first group is the process id.
var temporaryName = regexp.MustCompile(`^\.fullpipe-([0-9]{1,9})-[0-9]{1,3}(\.[^./]*)?$`)

// removeStale removes temporary files of this user's killed processes from a directory.
func removeStale(dir string) {
	d, err := os.Open(dir)
	if err != nil {
		return
	}
	defer d.Close()
	names, _ := d.Readdirnames(maxNames)
	for _, name := range names {
		found := temporaryName.FindStringSubmatch(name)
		if found == nil {
			continue
		}
		if pid, err := strconv.Atoi(found[1]); err != nil || pid == os.Getpid() {
			continue
		} else if path := filepath.Join(dir, name); unused(path, pid) {
			_ = RemoveLeft(path)
		}
	}
}

// RemoveLeft removes a file of this user's killed process. It keeps links, special files and other users' files.
func RemoveLeft(path string) error {
	info, err := os.Lstat(path)
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() || !isOurs(info) {
		return notRegular(path)
	}
	return os.Remove(path)
}
