//go:build linux

package live

import (
	"bytes"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/fullpipe-net/fullpipe/e2e/harness"
	"github.com/fullpipe-net/fullpipe/internal/lab"
	"github.com/fullpipe-net/fullpipe/internal/lab/still"
	printed "github.com/fullpipe-net/fullpipe/internal/record"
)

// TestTuneForFair: each way to send was measured with a flow beside it, and says what that one
// kept; what shared the link is not told as what a transfer gets alone.
func TestTuneForFair(t *testing.T) {
	t.Parallel()
	still.Undisturbed(t, func() error {
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
			return fmt.Errorf("nothing was tried beside another flow: %s", d.Reason)
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
