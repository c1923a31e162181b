//go:build linux

package e2e

import (
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/lab"
)

// bankLineCells are the cells to measure: FULLPIPE_BANK_CASES=12 takes as many, spread over
// all.
func bankLineCells() []lineCell {
	all := lineCells()
	n, err := strconv.Atoi(os.Getenv("FULLPIPE_BANK_CASES"))
	if err != nil || n <= 0 || n >= len(all) {
		return all
	}
	var some []lineCell
	for i := range n {
		some = append(some, all[i*len(all)/n+i%4%(len(all)/n)])
	}
	return some
}

// TestBankLabLine holds links to what is asked of them, on a machine that does nothing but
// carry them, and beside two busy loops and another lab. It takes about fifty minutes.
func TestBankLabLine(t *testing.T) {
	bankOnly(t)
	for _, beside := range []lineBeside{
		{name: "alone", few: 0.995, exchanges: 0.98},
		{name: "beside two busy loops and a lab of 100 Mbit/s", crowded: true, few: 0.99, exchanges: 0.95},
	} {
		t.Run(beside.name, func(t *testing.T) {
			if beside.crowded {
				crowd(t)
			}
			for _, c := range bankLineCells() {
				t.Run(c.String(), func(t *testing.T) {
					alone(t, func() { beside.measure(t, c) })
				})
			}
		})
	}
}

// lineBeside is what else the machine does, and the shares of a full line and of the possible
// exchanges that are asked for beside it.
type lineBeside struct {
	name           string
	crowded        bool
	few, exchanges float64
}

func (o lineBeside) measure(t *testing.T, c lineCell) {
	over := "IPv4"
	if c.six {
		over = "IPv6"
	}
	run := func(claim string, measure func() (measured string, holds bool, late lab.Account)) {
		e := exact{crowded: o.crowded}
		var worst string
		holds := true
		for e.more() {
			measured, held, late := measure()
			if e.keep(lateness(late)) && (worst == "" || holds && !held) {
				worst, holds = measured, held
			}
		}
		record(t, e.into(bankRow{Section: "lab: full lines", Case: fmt.Sprintf("%v, %s, %s", c, over, o.name), Claim: claim,
			Measured: worst, Verdict: passed(holds), Command: "make bank RUN=TestBankLabLine"}))
	}
	run(fmt.Sprintf("a cubic connection, queue 2 BDP: carries ≥ %.1f %% of the rate", 100*o.few),
		func() (string, bool, lab.Account) {
			share, late := fullLine(t, c, 10*time.Second)
			return fmt.Sprintf("%.2f %%", 100*share), share >= o.few, late
		})
	run("UDP at 95 %, queue 5 ms: nothing dropped, nothing more than 2 ms late", func() (string, bool, lab.Account) {
		dropped, late := steadyLine(t, c, 5*time.Second)
		return fmt.Sprintf("%d dropped, at most %.2f ms late", dropped, 1e3*late.Up.Max.Seconds()), dropped == 0 &&
			late.Up.Max <= 2*time.Millisecond, late
	})
	run(fmt.Sprintf("requests of 8192 bytes: ≥ %.0f %% of what round trip, bits and floor allow", 100*o.exchanges),
		func() (string, bool, lab.Account) {
			share, late := exchangesOn(t, c)
			return fmt.Sprintf("%.2f %%", 100*share), share >= o.exchanges, late
		})
}
