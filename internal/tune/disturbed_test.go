package tune

import (
	"cmp"
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/advice"
	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/search"
	"github.com/fullpipe-net/fullpipe/internal/search/simpath"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/tune/simpeer"
)

// TestDisturbed_StarvedHost checks that a host without a free core, or a late lab, leads to the advice to measure
// again, for the right end. A remedy that was shown to help all the same remains.
func TestDisturbed_StarvedHost(t *testing.T) {
	for _, c := range []struct {
		name      string
		near, far float64
		late      bool
		policed   bool       // nothing helps
		end       advice.End // "": not disturbed
	}{
		{"a quiet one", 0.05, 0.05, false, true, ""},
		{"this host", 0.42, 0.12, false, true, advice.Sender},
		{"the far host", 0, 0.6, false, true, advice.Receiver},
		{"a late lab", 0, 0, true, true, advice.Both},
		{"a remedy helps", 0.42, 0, false, false, ""},
	} {
		path := narrow()
		path.AutoWindow, path.Loss, path.Noise = 4*path.BDP(), 0.003, simpath.Noise{Dev: 0.004}
		peer := simpeer.New(path, 1)
		peer.NearStarved, peer.FarStarved, peer.Policed = c.near, c.far, c.policed
		d := run(t, peer, func(cfg *Config) { cfg.Late = func() bool { return c.late } })
		if c.end == "" {
			if d.Disturbed != nil || d.Reason.Code == HostDisturbed || (d.Chosen == nil) != c.policed {
				t.Errorf("%s: %+v, %s", c.name, d.Disturbed, d.Reason.Code)
			}
			continue
		}
		if d.Verdict != search.Inconclusive || d.Disturbed == nil || d.Reason.Code != HostDisturbed ||
			record.OrZero(cmp.Or(d.Disturbed.NearStarved, d.Disturbed.FarStarved)) != max(c.near, c.far) ||
			d.Disturbed.LateLab != c.late {
			t.Errorf("%s: %s, %s", c.name, d.Verdict, d.Reason.Code)
			continue
		}
		if end := d.Disturbed.End(transfer.Up); end != c.end {
			t.Errorf("%s: %s", c.name, end)
		}
	}
}

// A full link is full whatever a host lacks.
func TestDisturbed_FullLink(t *testing.T) {
	path := narrow()
	path.AutoWindow = 4 * path.BDP()
	peer := simpeer.New(path, 1)
	peer.FarStarved = 0.3
	if d := run(t, peer, nil); d.Verdict != search.NoChange || d.Disturbed != nil {
		t.Errorf("%s: %s", d.Verdict, d.Reason.Code)
	}
}
