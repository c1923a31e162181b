package stalltest

import (
	"os/exec"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/testenv/must"
)

// TestNow_DetectsStalledMachine stops this program for 200 ms by a child. The sleeper may need more attempts on a busy
// machine.
func TestNow_DetectsStalledMachine(t *testing.T) {
	const stop = "kill -STOP $PPID; sleep 0.2; kill -CONT $PPID"
	var got Time
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); {
		before := Now()
		must.Do(t, exec.Command("sh", "-c", stop).Run())
		for range 20 {
			<-time.After(sleep)
			got = Now().Since(before)
			if got.Still >= 150*time.Millisecond && got.Still <= got.Span && got.Disturbs() {
				return
			}
		}
	}
	t.Errorf("%v of %v", got.Still, got.Span)
}
