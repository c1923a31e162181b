//go:build linux

package e2e

import (
	"fmt"
	"os"
	"strconv"
	"strings"
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

// TestBankLabLine holds links to what is asked of them, alone and beside two busy loops
// and a second lab. Three quarters of an hour for all cells.
func TestBankLabLine(t *testing.T) {
	bankOnly(t)
	for _, beside := range []bool{false, true} {
		name, few := "alone", 0.995
		if beside {
			name, few = "beside two busy loops and a lab of 100 Mbit/s", 0.99
		}
		t.Run(strings.Fields(name)[0], func(t *testing.T) {
			if beside {
				crowd(t)
			}
			for _, c := range bankLineCells() {
				bankLine(t, c, name, few, beside)
			}
		})
	}
}

func bankLine(t *testing.T, c lineCell, company string, few float64, beside bool) {
	over := "IPv4"
	if c.six {
		over = "IPv6"
	}
	row := func(e *exact, claim, measured, verdict string) {
		record(t, e.into(bankRow{Section: "lab: full lines", Case: fmt.Sprintf("%v, %s, %s", c, over, company), Claim: claim,
			Measured: measured,
			Verdict:  verdict, Command: "make bank RUN=TestBankLabLine"}))
	}
	run := func(measure func() (string, bool, lab.Account), claim string) {
		var e exact
		var measured string
		var holds bool
		for e.more() {
			var late lab.Account
			alone(t, func() { measured, holds, late = measure() })
			e.keep(lateness(late))
		}
		row(&e, claim, measured, passed(holds))
	}
	run(func() (string, bool, lab.Account) {
		share, late := fullLine(t, c, 10*time.Second)
		return fmt.Sprintf("%.2f %%", 100*share), share >= few, late
	}, fmt.Sprintf("a cubic connection, queue 2 BDP: carries ≥ %.1f %% of the rate", 100*few))
	run(func() (string, bool, lab.Account) {
		dropped, late := steadyLine(t, c, 5*time.Second)
		return fmt.Sprintf("%d dropped, at most %.2f ms late", dropped, 1e3*late.Up.Max.Seconds()), dropped == 0 &&
			late.Up.Max <= 2*time.Millisecond, late
	}, "UDP at 95 %, queue 5 ms: nothing dropped, nothing more than 2 ms late")
	least := 0.98
	if beside {
		least = 0.95
	}
	run(func() (string, bool, lab.Account) {
		share, late := exchangesOn(t, c)
		return fmt.Sprintf("%.2f %%", 100*share), share >= least, late
	}, fmt.Sprintf("requests of 8192 bytes: ≥ %.0f %% of what round trip, bits and floor allow", 100*least))
}
