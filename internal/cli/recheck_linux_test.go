package cli

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/cli/settings"
	"github.com/fullpipe-net/fullpipe/internal/lab/stalltest"
	"github.com/fullpipe-net/fullpipe/internal/testenv"
	"github.com/fullpipe-net/fullpipe/internal/testenv/must"
)

// TestRecheck_ReportsHalvedLink: visits of a path through a lab, dated six hours apart; then the
// link carries half. The first visit reports a dip within half an hour, later ones a
// change, and none before them anything. The next process reports once the results of killed processes.
func TestRecheck_ReportsHalvedLink(t *testing.T) {
	t.Parallel()
	testenv.Need(t, testenv.Lab, testenv.Quiet)
	stalltest.Undisturbed(t, func() error { return aLinkHalves(t) })
}

func aLinkHalves(t *testing.T) error {
	dir := t.TempDir()
	key, reported := filepath.Join(dir, "key"), filepath.Join(dir, "reported")
	must.Do(t, os.WriteFile(key, []byte(strings.Repeat("5a", 32)), 0o600))
	onChange := filepath.Join(dir, "on-change")
	script := "#!/bin/sh\necho \"$FULLPIPE_EVENT $FULLPIPE_METRIC $FULLPIPE_DIRECTION ${FULLPIPE_KEY-none}\" >> " +
		reported + "\n"
	must.Do(t, os.WriteFile(onChange, []byte(script), 0o700))
	begin := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	// visits runs visits in one lab and returns their statuses.
	type visit struct {
		at     time.Duration
		killed bool // when it has kept its first result
	}
	visits := func(path string, all []visit, flags ...string) (statuses []string, out string) {
		t.Helper()
		var script strings.Builder
		for _, v := range all {
			script.WriteString(asOf + "=" + begin.Add(v.at).Format(time.RFC3339) + " ")
			if v.killed {
				script.WriteString(killedOnceKept + "=1 ")
			}
			script.WriteString(os.Args[0] + " recheck fullpipe://$FULLPIPE_FAR --record " +
				"--time 500ms --key-file " + key + " --on-change " + onChange + " " + strings.Join(flags, " ") +
				"; echo status $?; ")
		}
		cmd := exec.CommandContext(t.Context(), os.Args[0], "lab", path, "--far",
			os.Args[0]+" serve --quiet --key-file "+key, "--", "sh", "-c", script.String())
		cmd.Env = append(withoutStore(os.Environ()), asProgram+"=1", settings.Variable+"=", "FULLPIPE_HISTORY="+dir,
			"FULLPIPE_STATE="+filepath.Join(dir, "state"))
		var errs bytes.Buffer
		cmd.Stderr = &errs
		text, err := cmd.Output()
		if err != nil {
			t.Fatalf("%v\n%s%s", err, text, errs.Bytes())
		}
		for line := range strings.Lines(string(text)) {
			if status, ok := strings.CutPrefix(line, "status "); ok {
				statuses = append(statuses, strings.TrimSpace(status))
			}
		}
		return statuses, string(text) + errs.String()
	}
	said := func() string {
		text, _ := os.ReadFile(reported)
		return string(text)
	}
	every := func(first, n int) (all []visit) {
		for i := range n {
			all = append(all, visit{at: time.Duration(first+i) * 6 * time.Hour})
		}
		return all
	}
	statuses, out := visits("rate=20mbit,rtt=10ms", every(0, 16))
	if strings.Join(statuses, "") != strings.Repeat("0", 16) || said() != "" {
		return fmt.Errorf("%v, %s\n%s", statuses, said(), out)
	}
	// The first results of half the link are kept by processes that are killed before they report.
	var first []visit
	for i := range 4 {
		first = append(first, visit{16*6*time.Hour + time.Duration(i)*3*time.Minute, true})
	}
	statuses, out = visits("rate=10mbit,rtt=10ms", slices.Concat(first, every(17, 6)))
	if strings.Join(statuses[:4], " ") != "137 137 137 137" || statuses[4] != "3" ||
		strings.Count(out, "dip: fullpipe://") != 1 {
		return fmt.Errorf("the first visits of half the link: %v\n%s", statuses, out)
	}
	lines := strings.Split(strings.TrimSpace(said()), "\n")
	if len(lines) < 2 || lines[0] != "dip goodput up none" || lines[1] != "changed goodput up none" ||
		strings.Count(said(), "dip goodput") != 1 {
		return fmt.Errorf("%v was reported, statuses %v\n%s", lines, statuses, out)
	}
	// A test moves some 600 kB: half of that cuts it short, and then the day's budget is used up.
	at := 30 * 4 // quarters of a day later
	statuses, out = visits("rate=10mbit,rtt=10ms", every(at, 2), "--day-bytes 300kB --day-time 0s --time 600ms --zone UTC")
	if strings.Join(statuses, "") != "10" || !strings.Contains(out, "more than the day's budget") ||
		!strings.Contains(out, "the day's budget of bytes") {
		return fmt.Errorf("%v\n%s", statuses, out)
	}
	return nil
}
