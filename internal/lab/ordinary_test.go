//go:build linux

package lab

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/testenv"
	"github.com/fullpipe-net/fullpipe/internal/testenv/must"
)

// as runs a lab of this binary as an ordinary user with the given mode of /dev/net/tun, in a mount namespace of its
// own.
func as(t *testing.T, mode, script string) (string, error) {
	t.Helper()
	testenv.Need(t, testenv.Root)
	// Only the owner may read the directories of test binaries.
	dir := must.Get(os.MkdirTemp("", "fullpipe-lab"))(t)
	t.Cleanup(func() { os.RemoveAll(dir) })
	binary, err := os.ReadFile("/proc/self/exe")
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "lab"), binary, 0o755)
	}
	if err == nil {
		err = os.Chmod(dir, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "unshare", "-m", "sh", "-ec", `
		mkdir "$1/dev"
		mount -t tmpfs -o dev none "$1/dev"
		mknod "$1/dev/tun" c 10 200
		chmod "$2" "$1/dev/tun"
		mount --bind "$1/dev/tun" /dev/net/tun
		cd "$1"
		exec setpriv --reuid 65534 --regid 65534 --clear-groups "$1/lab"`, "-", dir, mode)
	cmd.Env = append(os.Environ(), userVariable+"="+script)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func TestOrdinaryUser(t *testing.T) {
	testenv.Need(t, testenv.Lab)
	t.Parallel()
	out, err := as(t, "666", "cat /proc/self/uid_map; ping -n -c 1 $FULLPIPE_FAR && cat /proc/sys/net/ipv4/tcp_rmem && "+
		"echo 0 >/proc/sys/net/ipv4/tcp_sack")
	if err != nil || !strings.Contains(out, "65534") || !strings.Contains(out, "4096\t131072\t33554432") {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestClosedDevice(t *testing.T) {
	testenv.Need(t, testenv.Lab)
	t.Parallel()
	out, err := as(t, "600", "true")
	if err == nil || !strings.Contains(out, "opening /dev/net/tun: permission denied") {
		t.Errorf("%v\n%s", err, out)
	}
}
