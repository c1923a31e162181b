//go:build linux

package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/lab"
	printed "github.com/fullpipe-net/fullpipe/internal/record"
)

// TestTuneForFair: each way to send was measured with a flow beside it, and says what that one
// kept; what shared the link is not told as what a transfer gets alone.
func TestTuneForFair(t *testing.T) {
	t.Parallel()
	undisturbed(t, func() error {
		site := newTuneSite(t, "rate=20mbit,rtt=40ms,loss=1%")
		program, err := fullpipe()
		if err != nil {
			t.Fatal(err)
		}
		var out, problems bytes.Buffer
		args := []string{program, "tune", "fullpipe://" + hostText(site.far), "--goal", "fair", "--budget", "60s", "--json"}
		if _, err := site.lab.Near.Run(lab.Command{Args: args, Env: site.env, Stdout: &out, Stderr: &problems}); err != nil {
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
