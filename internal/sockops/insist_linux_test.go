package sockops

import (
	"os"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"
)

// TestRelay_KillsAfterASecondSIGTERM counts SIGTERMs within minKillInterval as one; a later one kills. Other signals
// are forwarded.
func TestRelay_KillsAfterASecondSIGTERM(t *testing.T) {
	type step struct {
		after      time.Duration // since the previous step
		sent, want os.Signal
	}
	const term, kill = unix.SIGTERM, unix.SIGKILL
	for name, steps := range map[string][]step{
		"at once":           {{0, term, term}, {0, term, term}, {0, term, term}},
		"just before":       {{0, term, term}, {minKillInterval - 1, term, term}},
		"later":             {{0, term, term}, {minKillInterval, term, kill}},
		"after two at once": {{0, term, term}, {0, term, term}, {minKillInterval, term, kill}},
		"a late first one":  {{time.Hour, term, term}},
		"other signals":     {{0, term, term}, {minKillInterval, unix.SIGUSR1, unix.SIGUSR1}, {0, unix.SIGHUP, unix.SIGHUP}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var got, want []os.Signal
				signals, over := make(chan os.Signal), make(chan struct{})
				go relay(t.Context(), func(s os.Signal) error { got = append(got, s); return nil }, signals, over)
				for _, step := range steps {
					time.Sleep(step.after)
					signals <- step.sent
					want = append(want, step.want)
				}
				close(over)
				synctest.Wait()
				if !slices.Equal(got, want) {
					t.Errorf("%v are sent on, want %v", got, want)
				}
			})
		})
	}
}
