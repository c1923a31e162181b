//go:build linux

package commands

import (
	"strings"
	"testing"

	"github.com/fullpipe-net/fullpipe/e2e/harness"
)

// TestApplyReadsATune checks that apply leaves a program's own settings to the program, sets route attributes on the
// route, and that undo restores the routes.
func TestApplyReadsATune(t *testing.T) {
	t.Parallel()
	out := harness.RunInLab(t, "rate=20mbit,rtt=10ms", `
tuned() { echo '{"schema":"fullpipe/tune/v1","far":{"address":"'$FULLPIPE_FAR'"},"directions":[{"settings":['"$1"']}]}'; }
program='{"host":"near","role":"sender","name":"TCP_CONGESTION","value":"reno","where":"in the program, before connect()"}'
route='{"host":"near","role":"sender","name":"congctl","value":"reno","where":"of the route to the far host: ip route change"}'
system='{"host":"near","role":"sender","name":"net.ipv4.tcp_congestion_control","value":"reno",'
system=$system'"where":"sysctl, every new connection of the host"}'
ip -j route > before
tuned "$program,$route,$system" > tuned.json
$F apply --yes --json tuned.json > applied.json
ip route get $FULLPIPE_FAR > /dev/null
ip route | grep -c 'congctl reno'
! grep -q tcp_congestion_control applied.json
$F undo > /dev/null
ip -j route | cmp - before
tuned "$program" > program.json
$F apply --yes program.json 2>&1 || echo status $?
`)
	if !strings.HasPrefix(out, "1\n") || !strings.Contains(out, "belong in the program") ||
		!strings.HasSuffix(out, "status 2\n") {
		t.Error(out)
	}
}
