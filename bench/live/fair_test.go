//go:build linux

package live

import (
	"bytes"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/fullpipe-net/fullpipe/e2e/harness"
	"github.com/fullpipe-net/fullpipe/internal/lab"
	"github.com/fullpipe-net/fullpipe/internal/lab/stalltest"
	printed "github.com/fullpipe-net/fullpipe/internal/record"
)

// TestTuneForFair checks that each setting was measured with a competing flow and reports that flow's share, and that
// the rate on the shared link is not reported as the rate of a transfer alone.
func TestTuneForFair(t *testing.T) {
	t.Parallel()
	stalltest.Undisturbed(t, func() error {
		site := harness.NewTuneSite(t, "rate=20mbit,rtt=40ms,loss=1%")
		program := harness.Program(t)
		var out, problems bytes.Buffer
		args := []string{program, "tune", "fullpipe://" + harness.PeerHost(site.Far), "--goal", "fair", "--budget", "60s",
			"--json"}
		if _, err := site.Lab.Near.Run(lab.Command{Args: args, Env: site.Env, Stdout: &out, Stderr: &problems}); err != nil {
			t.Fatal(err)
		}
		var doc printed.Tune
		if err := json.Unmarshal(out.Bytes(), &doc); err != nil || len(doc.Directions) != 1 {
			return fmt.Errorf("%v: %s%s", err, out.String(), problems.String())
		}
		d := &doc.Directions[0]
		if len(d.Remedies) == 0 {
			return fmt.Errorf("nothing was tried with a competing flow: %s", d.Reason)
		}
		for _, r := range d.Remedies {
			if r.OthersFactor == nil || *r.OthersFactor <= 0 || r.GoodputBps > 20e6 {
				return fmt.Errorf("%+v", r)
			}
		}
		if d.Chosen != nil && !d.Chosen.Automatic && d.Others == nil {
			return fmt.Errorf("%s was chosen, and nobody knows what others keep", d.Chosen.Name)
		}
		return nil
	})
}
