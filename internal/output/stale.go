package output

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
)

// maxNames bounds how much of a directory is searched for what killed processes left.
const maxNames = 10_000

// temporaryName is the name of a file that beside makes.
var temporaryName = regexp.MustCompile(`^\.fullpipe-([0-9]{1,9})-[0-9]{1,3}(\.[^./]*)?$`)

// removeStale removes the temporary files that killed processes of this user left in a directory.
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

// RemoveLeft removes a file that a killed process of this user left. It leaves a link, a special file and a file of
// another user.
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
