package tune

import (
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/tune/simpeer"
)

// TestRun_ForcesBuffersOfCandidatesOnly measures the baseline without privilege.
func TestRun_ForcesBuffersOfCandidatesOnly(t *testing.T) {
	peer := simpeer.New(narrow(), 1)
	run(t, peer, nil)
	var today, windows int
	for _, spec := range peer.Ran {
		asked := spec.Near.SendBuffer > 0 || spec.Far.Clamp > 0
		switch {
		case asked:
			windows++
		case !spec.Program.RequestResponse:
			today++
		}
		if spec.Near.Force != asked {
			t.Errorf("forces %v: %+v", spec.Near.Force, spec)
		}
		if spec.Far.Force {
			t.Errorf("the far host's ceilings are its own: %+v", spec)
		}
	}
	if today == 0 || windows == 0 {
		t.Errorf("%d transfers as today, %d with a window", today, windows)
	}
}
