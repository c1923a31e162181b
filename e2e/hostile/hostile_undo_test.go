//go:build linux

package hostile

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"unicode"

	"github.com/fullpipe-net/fullpipe/e2e/harness"
)

// undone runs in namespaces of its own, in which the rest of the host cannot be written. It finds the name of its
// network namespace's journal, and then tries each of the names, and files that are no journal. It reports a command
// that fails badly, and a kernel setting that differs afterwards.
const undone = `for d in kernel vm fs dev; do
	mount --bind /proc/sys/$d /proc/sys/$d
	mount -o remount,bind,ro /proc/sys/$d
done
mount -t tmpfs none /etc
"$F" plan --rate 1gbit --rtt 40ms --json > plan
for name in "$@"; do
	unshare -n sh -euc "$ONE" sh $name
done
`

// one tries one journal in a network namespace of its own, after finding out the journal's name there.
const one = `rm -rf state
mkdir -m 700 state
"$F" apply --yes plan >/dev/null
journal=$(ls state/journal-*.json)
"$F" undo >/dev/null
settings() { find /proc/sys/net -type f -writable ! -name flush -exec grep -H . {} + 2>/dev/null | sort; }
settings > before
case $1 in
fifo) mkfifo $journal;;
endless) ln -s /dev/zero $journal;;
directory) mkdir $journal;;
*) "$H" $1 > $journal; chmod 600 $journal;;
esac
for line in status undo 'undo --json' 'undo --forget net.ipv4.ip_forward' 'apply --yes plan' undo; do
	said=0
	timeout 60 "$F" $line >out 2>&1 </dev/null || said=$?
	test $said -le 3 || echo "$1: $line: status $said"
	test -s out || echo "$1: $line: says nothing"
	(echo "$1: $line:"; cat out) >> all
done
settings > after
cmp -s before after || { echo "$1:"; diff before after || true; }
`

// TestHostileJournals checks that undo and apply on hostile journals change nothing that fullpipe does not change,
// report the fault, and end.
func TestHostileJournals(t *testing.T) {
	t.Parallel()
	program := harness.Program(t)
	args := []string{"-Urmn", "sh", "-euc", undone, "sh", "fifo", "endless", "directory"}
	for name, kind := range harness.HostileCases(t) {
		if kind == "journal" {
			args = append(args, name)
		}
	}
	dir := t.TempDir()
	cmd := exec.CommandContext(t.Context(), "unshare", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "F="+program, "H="+harness.HostileProgram(t), "ONE="+one,
		"FULLPIPE_STATE="+filepath.Join(dir, "state"),
		"XDG_STATE_HOME="+dir)
	out, err := cmd.CombinedOutput()
	if err != nil || len(out) > 0 {
		t.Errorf("%v: %s", err, out)
	}
	all, err := os.ReadFile(filepath.Join(dir, "all"))
	said := string(all)
	if at := strings.IndexFunc(said, func(r rune) bool {
		return r != '\n' && r != '\t' &&
			unicode.IsControl(r)
	}); at >= 0 ||
		err != nil || strings.Contains(said, "\nFORGED") || strings.Contains(said, "goroutine ") {
		t.Errorf("%v: %q", err, said[max(0, at-80):min(len(said), max(at, 0)+2000)])
	}
}
