package tune

import (
	"errors"
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/search"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/tune/simpeer"
)

// TestTune_Goals checks each goal on a full link with a deep queue. There is nothing to change for throughput; for
// latency the queue is emptied, by pacing where no window can be set.
func TestTune_Goals(t *testing.T) {
	refuses := func(s transfer.Spec) error {
		if s.Near.SendBuffer > 0 || s.Far.ReceiveBuffer > 0 || s.Far.Clamp > 0 {
			return errors.New("no such option")
		}
		return nil
	}
	for _, c := range []struct {
		name   string
		goal   Goal
		fail   func(transfer.Spec) error
		chosen func(Setup) bool // nil: nothing is
	}{
		{"throughput", Throughput, nil, nil},
		{"latency", Latency, nil, func(s Setup) bool { return s.Window > 0 }},
		{"latency, no window can be set", Latency, refuses, func(s Setup) bool { return s.PacingBps > 0 }},
	} {
		path := narrow()
		path.AutoWindow = 2.5 * path.BDP()
		peer := simpeer.New(path, 1)
		peer.Fail = c.fail
		d := run(t, peer, func(cfg *Config) { cfg.Goal = c.goal })
		switch {
		case c.chosen == nil:
			if d.Verdict != search.NoChange || d.Chosen != nil || d.Delay != nil {
				t.Errorf("%s: %s, %+v: %s", c.name, d.Verdict, d.Chosen, d.Reason.Code)
			}
		case d.Chosen == nil || !c.chosen(d.Chosen.Setup):
			t.Errorf("%s: %+v: %s, %v", c.name, d.Chosen, d.Reason.Code, d.Remedies)
		case d.Delay == nil || d.Delay.CI95[1] >= 0.6 || d.Gain.Mid < keeps ||
			d.After.Interval.Mid < keeps*path.Automatic():
			t.Errorf("%s: delay %+v, gain %+v", c.name, d.Delay, d.Gain)
		}
	}
}

// Fair needs a second connection, and says so before anything is measured.
func TestRun_FairNeedsSecondFlow(t *testing.T) {
	peer := simpeer.New(narrow(), 1)
	_, err := Run(t.Context(), Config{Peer: peer, Directions: []transfer.Direction{transfer.Up}, Goal: Fair})
	if err == nil || len(peer.Ran) > 0 {
		t.Errorf("%v after %d transfers", err, len(peer.Ran))
	}
}
