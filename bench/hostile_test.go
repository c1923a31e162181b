//go:build linux

package bench

import (
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/e2e/harness"
)

// bankTime is FULLPIPE_BANK_TIME, or the default duration of the test.
func bankTime(t *testing.T, otherwise time.Duration) time.Duration {
	t.Helper()
	text := os.Getenv("FULLPIPE_BANK_TIME")
	if text == "" {
		return otherwise
	}
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		t.Fatalf("FULLPIPE_BANK_TIME is %q, not a time as 10m", text)
	}
	return d
}

// TestBankHostile has three parts, each to be run by itself (RUN=TestBankHostile/soak): each far end of the corpus
// against each command that can meet it, until the command ends; all strangers at one server for an hour; and each
// fuzz target for its time, continued from an earlier run. FULLPIPE_BANK_TIME replaces the hour, and limits the time
// of all fuzzing.
func TestBankHostile(t *testing.T) {
	bankOnly(t)
	const section = "Hostile far ends"
	t.Run("corpus", func(t *testing.T) {
		tried := harness.TryHostileCases(t, true, 150*time.Second)
		record(t, bankRow{Section: section, Case: "the corpus, every command", Claim: "each ends by itself or by an " +
			"interrupt, in bounded memory, with nothing that a terminal obeys",
			Measured: fmt.Sprintf("%d commands", tried), Spread: "1 run", Verdict: passed(!t.Failed()),
			Command: "make bank RUN=TestBankHostile/corpus"})
	})
	t.Run("soak", func(t *testing.T) {
		length := bankTime(t, time.Hour)
		s := soaked(t, length)
		for _, row := range s.rows(length) {
			record(t, row)
		}
	})
	t.Run("fuzz", func(t *testing.T) { fuzzes(t, bankTime(t, 12*time.Hour)) })
}
