package main

import (
	"bytes"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/testenv"
)

// inside installs the package into a copy of this system that is written to memory, uses
// it as somebody who never did, removes it, and leaves what was written in $1/upper.
const inside = `set -e
mount -t tmpfs tmpfs "$1"
mkdir "$1/upper" "$1/work" "$1/root"
mount -t overlay overlay -o "lowerdir=/,upperdir=$1/upper,workdir=$1/work" "$1/root"
for d in proc sys dev; do mount --rbind "/$d" "$1/root/$d"; done
cp "$2" "$1/root/package.deb"
within() { chroot "$1/root" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/new/home sh -ec "$2"; }
within "$1" 'dpkg -i /package.deb >/dev/null
	rm /package.deb
	fullpipe version | grep -q v1.2.3
	test -s /usr/share/man/man1/fullpipe-measure.1.gz
	test -s /usr/share/bash-completion/completions/fullpipe
	test -s /usr/share/fullpipe/watch/alerts.yml
	fullpipe measure lab:wan-12ms --time 500ms
	mkdir -p /etc/fullpipe
	fullpipe serve --until-eof --listen 127.0.0.1:0 --key-file /etc/fullpipe/key </dev/null >/dev/null
	test -s /etc/fullpipe/key
	systemd-analyze verify /usr/lib/systemd/system/fullpipe*
	printf "[recheck]\npeers = [\"127.0.0.1:1\"]\n" >/etc/fullpipe/config.toml
	install -d -o fullpipe -m 0700 /var/lib/fullpipe-recheck
	runuser -u fullpipe -- env FULLPIPE_STATE=/var/lib/fullpipe-recheck FULLPIPE_CONFIG=/etc/fullpipe/config.toml \
		fullpipe recheck --quiet && exit 9 || test $? = 1
	test -s /var/lib/fullpipe-recheck/host_id
	dpkg --purge fullpipe >/dev/null'
# the test checks the files that remain
cp -a "$1/upper" "$3"
`

// mayStay lists the files that may remain after the removal: state of dpkg and its triggers, and the cache of
// systemd-analyze, which the test calls.
var mayStay = []string{"var/lib/dpkg/", "var/log/", "var/cache/", "etc/.pwd.lock", "etc/passwd-", "etc/group-",
	"etc/shadow-", "etc/gshadow-", "etc/subuid-", "etc/subgid-", "run/systemd/systemd-units-load"}

// checkInstall installs the package on a clean system, measures with it, removes it and checks the remaining files.
func checkInstall(t *testing.T, deb string) {
	testenv.Need(t, testenv.Root, testenv.Dpkg, testenv.SystemdAnalyze)
	left := filepath.Join(t.TempDir(), "left")
	cmd := exec.CommandContext(t.Context(), "sh", "-c", inside, "sh", t.TempDir(), deb, left)
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, want := range []string{"peer", "limited by", "goodput"} {
		if !bytes.Contains(out, []byte(want)) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	err = filepath.WalkDir(left, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, _ := filepath.Rel(left, path)
		for _, prefix := range mayStay {
			if strings.HasPrefix(name, prefix) {
				return nil
			}
		}
		before, statErr := os.Lstat(filepath.Join("/", name))
		switch {
		case d.IsDir() && statErr == nil:
		case d.IsDir():
			t.Errorf("left: the directory /%s", name)
		case statErr == nil && before.Mode().IsRegular() && d.Type().IsRegular():
			was, _ := os.ReadFile(filepath.Join("/", name))
			is, _ := os.ReadFile(path)
			if !bytes.Equal(was, is) {
				t.Errorf("changed: /%s", name)
			}
		case d.Type()&fs.ModeCharDevice != 0 && os.IsNotExist(statErr): // a whiteout of what came and went
		case name == "var/lib/fullpipe": // purged, where a fullpipe was used before this test
		default:
			t.Errorf("left: /%s (%v)", name, d.Type())
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}
