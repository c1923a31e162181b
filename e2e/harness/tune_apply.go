//go:build linux

package harness

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// AppliedTune is the part of `tune --apply --json` about the changes that were kept.
type AppliedTune struct {
	Applied    bool
	Directions []struct {
		Applied *struct {
			Kept   bool
			Reason string
			Gain   struct {
				Factor float64
				CI95   *[2]float64
			}
		}
	}
}

// TuneApplyUndo runs `tune --apply` in a lab with these maxima of tcp_wmem (near) and tcp_rmem (far), then
// `undo`. It fails unless every sysctl of the near end is as before. wrap is a command that runs tune: "" or
// `timeout -s KILL 8`.
func TuneApplyUndo(t *testing.T, wmem, rmem, wrap string) (doc AppliedTune) {
	t.Helper()
	program := Program(t)
	dir := t.TempDir()
	far := "echo 4096 65536 " + rmem + " > /proc/sys/net/ipv4/tcp_rmem; exec $F serve --quiet"
	script := SysctlFunction + `
echo 4096 16384 ` + wmem + ` > /proc/sys/net/ipv4/tcp_wmem
sysctls > before
status=0
` + wrap + ` $F tune $FULLPIPE_FAR --apply --yes --budget 6s --json > tuned.json 2> notes || status=$?
$F undo > undone
sysctls | cmp - before || { cat tuned.json notes undone; exit 1; }
test "$($F status)" = "fullpipe has changed nothing here"
echo $status
`
	cmd := exec.Command(program, "lab", "rate=20mbit,rtt=60ms", "--far", far, "--", "sh", "-euc", script)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "F="+program, "FULLPIPE_STATE="+filepath.Join(dir, "state"),
		"FULLPIPE_KEY="+TuneKey)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	text, err := os.ReadFile(filepath.Join(dir, "tuned.json"))
	if err != nil {
		t.Fatal(err)
	}
	if wrap == "" {
		if err := json.Unmarshal(text, &doc); err != nil || len(doc.Directions) != 1 {
			t.Fatalf("%v in %s", err, text)
		}
		want := []string{"0"}
		switch a := doc.Directions[0].Applied; {
		case a == nil: // nothing to apply: something else may help, or nothing
			want = []string{"0", "3"}
		case !doc.Applied:
			want = []string{"3"}
		}
		if lines := strings.Fields(string(out)); !slices.Contains(want, lines[len(lines)-1]) {
			t.Errorf("exit status %s, applied %v", lines[len(lines)-1], doc.Applied)
		}
	}
	return doc
}
