//go:build linux

package bench

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/e2e/harness"
	"github.com/fullpipe-net/fullpipe/internal/lab"
	"github.com/fullpipe-net/fullpipe/internal/link"
	printed "github.com/fullpipe-net/fullpipe/internal/record"
)

// bankLineCells are the cells to measure: FULLPIPE_BANK_CASES=12 takes as many, spread over
// all.
func bankLineCells() []harness.LineCase {
	all := lineCells()
	n, err := strconv.Atoi(os.Getenv("FULLPIPE_BANK_CASES"))
	if err != nil || n <= 0 || n >= len(all) {
		return all
	}
	var some []harness.LineCase
	for i := range n {
		some = append(some, all[i*len(all)/n+i%4%(len(all)/n)])
	}
	return some
}

// TestBankLabLine compares links with their configuration, on an idle machine and on one that also runs two busy
// loops and another lab. It takes about fifty minutes.
func TestBankLabLine(t *testing.T) {
	bankOnly(t)
	for _, load := range []machineLoad{
		{name: "alone", few: 0.995, exchanges: 0.98},
		{name: "its programs at nice -20 beside two busy loops and another lab", crowded: true, few: 0.99, exchanges: 0.95},
	} {
		t.Run(load.name, func(t *testing.T) {
			if load.crowded {
				crowd(t)
			}
			for _, c := range bankLineCells() {
				t.Run(c.String(), func(t *testing.T) {
					c.Priority = load.crowded
					alone(t, func() { load.measure(t, c) })
				})
			}
		})
	}
}

// machineLoad is the load of the machine, with the required shares of a full line and of the possible exchanges.
type machineLoad struct {
	name           string
	crowded        bool
	few, exchanges float64
}

func (o machineLoad) measure(t *testing.T, c harness.LineCase) {
	over := "IPv4"
	if c.IPv6 {
		over = "IPv6"
	}
	run := func(claim string, measure func() (measured string, ok bool, late *printed.Late)) {
		e := exact{crowded: o.crowded}
		var worst string
		ok := true
		for e.more() {
			measured, runOK, late := measure()
			if e.keep(late) && (worst == "" || ok && !runOK) {
				worst, ok = measured, runOK
			}
		}
		record(t, e.into(bankRow{Section: "lab: full lines", Case: fmt.Sprintf("%v, %s, %s", c, over, o.name), Claim: claim,
			Measured: worst, Verdict: passed(ok), Command: "make bank RUN=TestBankLabLine"}))
	}
	run(fmt.Sprintf("a cubic connection, queue 2 BDP: carries ≥ %.1f %% of the rate", 100*o.few),
		func() (string, bool, *printed.Late) {
			share, late := harness.MeasureFullLine(t, c, 10*time.Second)
			return fmt.Sprintf("%.2f %%", 100*share), share >= o.few, lateness(late)
		})
	run(o.steadyClaim(), func() (string, bool, *printed.Late) {
		threadDelay := watchMachine(t)
		up, late := harness.MeasurePacedLine(t, c, 5*time.Second)
		measured, ok := o.steady(up, late)
		account := lateness(late)
		still := threadDelay() <= maxThreadDelay
		account.Believable = account.Believable && (o.crowded || still)
		return measured, ok, account
	})
	run(fmt.Sprintf("requests of 8192 bytes: ≥ %.0f %% of what round trip, bits and floor allow", 100*o.exchanges),
		func() (string, bool, *printed.Late) {
			share, late := harness.MeasureExchanges(t, c)
			return fmt.Sprintf("%.2f %%", 100*share), share >= o.exchanges, lateness(late)
		})
}

func (o machineLoad) steadyClaim() string {
	if o.crowded {
		return fmt.Sprintf("UDP at 95 %%, queue 5 ms: ≥ %.0f %% of it comes", 100*o.few)
	}
	return "UDP at 95 %, queue 5 ms: nothing dropped, nothing more than 2 ms late"
}

// steady judges datagrams. A machine with too much to do delays a packet now and then; that is not the link's fault
// while the datagrams arrive.
func (o machineLoad) steady(up link.Counters, late lab.Lateness) (measured string, ok bool) {
	if o.crowded {
		came := float64(up.Delivered) / float64(up.Delivered+up.DroppedQueue)
		return fmt.Sprintf("%.2f %%, at most %.2f ms late", 100*came, 1e3*late.Up.Max.Seconds()), came >= o.few
	}
	return fmt.Sprintf("%d dropped, at most %.2f ms late", up.DroppedQueue, 1e3*late.Up.Max.Seconds()),
		up.DroppedQueue == 0 && late.Up.Max <= 2*time.Millisecond
}

// lineCells are all rates at all round trips, a third of them over IPv6.
func lineCells() (all []harness.LineCase) {
	for _, mbit := range []float64{1, 2, 5, 10, 20, 37, 50, 100, 150, 200, 400, 900} {
		for _, ms := range []time.Duration{5, 11, 40, 120} {
			all = append(all, harness.LineCase{RateBps: mbit * 1e6, RTT: ms * time.Millisecond, IPv6: len(all)%3 == 2})
		}
	}
	return all
}

// crowd makes the machine busy with two loops and a second lab until the test ends.
func crowd(t *testing.T) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		spin := exec.Command(self)
		spin.Env = append(os.Environ(), harness.ProgramVariable+"=spin")
		spin.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
		if err := spin.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { spin.Process.Kill(); spin.Wait() })
	}
	other := harness.StartLine(t, harness.LineCase{RateBps: 100e6, RTT: 20 * time.Millisecond}, 500_000)
	other.Start(t, other.Lab.Near, "source")
}
