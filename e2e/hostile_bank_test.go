//go:build linux

package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// bankTime is FULLPIPE_BANK_TIME, or what a test of the bank takes by itself.
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

// TestBankHostile has three parts, each to be run by itself (RUN=TestBankHostile/soak):
// every far end of the corpus against every command that meets it, each waited out; all
// strangers at one server for an hour; and every fuzz target of what they reach for ten
// minutes. FULLPIPE_BANK_TIME is another time for the hour and for each ten minutes.
func TestBankHostile(t *testing.T) {
	bankOnly(t)
	const section = "Hostile far ends"
	t.Run("corpus", func(t *testing.T) {
		tried := tryAll(t, true, 150*time.Second)
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
	t.Run("fuzz", func(t *testing.T) {
		length := bankTime(t, 10*time.Minute)
		for _, room := range reached {
			for _, target := range fuzzTargets(t, room) {
				t.Run(room+"/"+target, func(t *testing.T) {
					out, err := exec.CommandContext(t.Context(), "go", "test", "-run", "^$", "-fuzz", "^"+target+"$", "-fuzztime",
						length.String(), "../internal/"+room).CombinedOutput()
					if err != nil {
						t.Errorf("%v: %s", err, out)
					}
					record(t, bankRow{Section: section, Case: "fuzz " + room + " " + target, Claim: "neither panics nor hangs",
						Measured: length.String(), Spread: "1 run", Verdict: passed(err == nil),
						Command: "make bank RUN=TestBankHostile/fuzz/" + room + "/" + target})
				})
			}
		}
	})
}

// reached are the packages that read what strangers, far ends and files of others say.
var reached = []string{"probe", "iperf3", "datagram", "capture", "flow", "render", "host", "audit", "plan", "sweep",
	"peer"}

// fuzzTargets are a package's, as it says itself: a name that is wrong would be fuzzed for
// nothing, without an error.
func fuzzTargets(t *testing.T, room string) (all []string) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "test", "-list", "^Fuzz", "../internal/"+room).Output()
	for line := range strings.Lines(string(out)) {
		if strings.HasPrefix(line, "Fuzz") {
			all = append(all, strings.TrimSpace(line))
		}
	}
	if err != nil || len(all) == 0 {
		t.Fatalf("%s has no fuzz targets: %v: %s", room, err, out)
	}
	return all
}
