//go:build linux

package live

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/fullpipe-net/fullpipe/e2e/harness"
	"github.com/fullpipe-net/fullpipe/internal/render/text"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// TestCPUIsAVerdict limits one end's program to the processor time that spinners on the same core leave. If that
// makes the transfer much slower, the verdict must be the CPU; otherwise it must not. No other test runs
// concurrently, because the spinners take processor time from all.
func TestCPUIsAVerdict(t *testing.T) {
	program := harness.Program(t)
	const profile = "rate=20mbit,rtt=10ms,queue=10bdp"
	const spin = "for i in 1 2 3; do taskset -c 0 sh -c 'while :; do :; done' & done; "
	serve := program + " serve --quiet"
	// The far end is limited once it has a transfer's connection in addition to the control connection.
	late := filepath.Join(t.TempDir(), "late.sh")
	if err := os.WriteFile(late, []byte(serve+` & server=$!
until [ $(ss -Htn state established '( sport = :5201 )' | wc -l) -ge 2 ]; do sleep 0.02; done
taskset -apc 0 $server >/dev/null
for task in /proc/$server/task/*; do renice -n 19 -p ${task##*/} >/dev/null; done
`+spin+"wait\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	free := *harness.Measure(t, profile, serve, "$FULLPIPE_FAR -t 2s").Directions[0].GoodputBps
	for name, limited := range map[string][3]string{ // the far end's command, before the near one's, its arguments
		"the sender":   {serve, spin + "taskset -c 0 nice -n 19 ", "--write-size 300"},
		"the receiver": {"bash " + late, "", "--receive-buffer 64KiB"},
	} {
		t.Run(name, func(t *testing.T) {
			d := harness.MeasureWithPrefix(t, profile, limited[0], limited[1], "$FULLPIPE_FAR -t 4s "+limited[2]).Directions[0]
			names := append([]verdict.Name{d.Limiter}, d.Candidates...)
			t.Logf("%.1f of %.1f Mbit/s: %s; %v", *d.GoodputBps/1e6, free/1e6, text.Verdict(&d), d.Shares)
			switch share := *d.GoodputBps / free; {
			case share < 0.6 && !slices.Contains(names, verdict.CPU):
				t.Errorf("not the cpu: %v", d.Evidence)
			case share > 0.95 && d.Limiter == verdict.CPU:
				t.Errorf("the cpu: %v", d.Evidence)
			}
		})
	}
}
