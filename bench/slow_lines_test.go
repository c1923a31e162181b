//go:build linux

package bench

import (
	"fmt"
	"testing"

	"github.com/fullpipe-net/fullpipe/e2e/harness"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// TestBankSlowLines tunes each line from 14.4 kbit/s up. It checks the capacity and the goodput, and records the
// elapsed time.
func TestBankSlowLines(t *testing.T) {
	bankOnly(t)
	const v90 = "rate=33.6kbit,down.rate=56kbit,rtt=130ms,queue=20packets,stack=windows-95"
	for _, c := range []struct {
		profile  string
		up, down float64
	}{{"modem-14.4k", 14.4e3, 14.4e3}, {"modem-28.8k", 28.8e3, 28.8e3}, {v90, 33.6e3, 56e3}, {"isdn-64k", 64e3, 64e3}} {
		for direction, bps := range map[transfer.Direction]float64{transfer.Up: c.up, transfer.Down: c.down} {
			t.Run(fmt.Sprintf("%s %s", c.profile, direction), func(t *testing.T) {
				t.Parallel()
				site, runs := harness.NewTuneSite(t, c.profile), exact{}
				var doc harness.TuneReport
				for runs.more() {
					doc = site.Tune(t, direction)
					runs.keep(doc.Late)
				}
				if len(doc.Directions) != 1 {
					t.Fatalf("%+v", doc)
				}
				d := &doc.Directions[0]
				carries, before := d.Path.Bottleneck/bps, d.Before.Median/(bps*1460/1500)
				spread := fmt.Sprintf("%.0f s, %s", doc.ElapsedS, d.Verdict)
				row := func(claim string, share float64, ok bool) {
					record(t, runs.into(bankRow{Section: "slow lines", Case: fmt.Sprintf("%s %s", direction, c.profile), Claim: claim,
						Measured: fmt.Sprintf("%.1f %%", 100*share), Spread: spread, Verdict: passed(ok),
						Command: fmt.Sprintf("fullpipe tune lab:%s --direction %s", c.profile, direction)}))
				}
				row("the capacity is right to 2 %", carries, carries >= 0.98 && carries <= 1.02)
				row("before is what the line carries, to 10 %, and not more", before, before >= 0.9 && before <= 1.02)
			})
		}
	}
}
