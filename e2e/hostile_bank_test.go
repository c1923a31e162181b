//go:build linux

package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/probe"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
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

// TestBankHostile tries every far end of the corpus against every command that meets it and
// waits each out, then keeps strangers at one server for an hour (FULLPIPE_BANK_TIME) and
// fuzzes what reads their bytes for ten minutes a reader, or as long as that says.
func TestBankHostile(t *testing.T) {
	bankOnly(t)
	const section = "Hostile far ends"
	tried := 0
	ok := t.Run("corpus", func(t *testing.T) { tried = tryAll(t, true, 150*time.Second) })
	record(t, bankRow{Section: section, Case: "the corpus, every command", Claim: "each ends by itself or by an " +
		"interrupt, in bounded memory, with nothing that a terminal obeys",
		Measured: fmt.Sprintf("%d commands", tried), Spread: "1 run", Verdict: passed(ok),
		Command: "make bank RUN=TestBankHostile"})
	soak := bankTime(t, time.Hour)
	var served, made int
	ok = t.Run("soak", func(t *testing.T) { served, made = soaked(t, soak) })
	record(t, bankRow{Section: section, Case: fmt.Sprintf("strangers for %v", soak),
		Claim:    "every client with the key is served, and no descriptors gather",
		Measured: fmt.Sprintf("%d clients served among %d strangers", served, made), Spread: "1 run", Verdict: passed(ok),
		Command: "make bank RUN=TestBankHostile"})
	fuzz := bankTime(t, 10*time.Minute)
	for _, f := range []struct{ room, target string }{
		{"probe", "FuzzReadMessage"}, {"probe", "FuzzOffer"}, {"iperf3", "FuzzParams"}, {"iperf3", "FuzzResults"},
		{"iperf3", "FuzzFrame"},
		{"iperf3", "FuzzDatagram"}, {"iperf3", "FuzzReadStatus"}, {"capture", "FuzzFile"}, {"capture", "FuzzDecode"},
		{"render", "FuzzShow"},
		{"render", "FuzzLine"}, {"host", "FuzzJournal"}, {"audit", "FuzzParseSnapshot"}, {"plan", "FuzzPasted"},
		{"sweep", "FuzzParseJournal"},
	} {
		ok := t.Run(f.target, func(t *testing.T) {
			fuzzing := exec.CommandContext(t.Context(), "go", "test", "-run", "^$", "-fuzz", "^"+f.target+"$", "-fuzztime",
				fuzz.String(), "../internal/"+f.room)
			if out, err := fuzzing.CombinedOutput(); err != nil {
				t.Errorf("%v: %s", err, out)
			}
		})
		record(t, bankRow{Section: section, Case: "fuzz " + f.room + " " + f.target, Claim: "neither panics nor hangs",
			Measured: fuzz.String(), Spread: "1 run",
			Verdict: passed(ok), Command: "go test -fuzz " + f.target + " ./internal/" + f.room})
	}
}

// soaked has strangers come to one server and a client with the key measure again and again.
func soaked(t *testing.T, length time.Duration) (served, made int) {
	s := newSite(t)
	s.honest(t) // what is opened once is open now
	before := openFiles(t, s.pid)
	for until := time.Now().Add(length); time.Now().Before(until); {
		come := make(chan int)
		go func() { come <- strangers(t, s.address, 1000, 100, 300*time.Millisecond) }()
		client, err := probe.Connect(t.Context(), s.address, s.key)
		if err == nil {
			_, err = transfer.Run(t.Context(), client, transfer.Spec{Direction: transfer.Up, Bytes: 1 << 20}, nil)
			client.Close()
		}
		if made += <-come; err != nil {
			t.Errorf("client %d: %v", served+1, err)
			return served, made
		}
		served++
	}
	for deadline := time.Now().Add(time.Minute); openFiles(t, s.pid) > before+16; time.Sleep(100 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Errorf("%d descriptors, %d before", openFiles(t, s.pid), before)
			break
		}
	}
	return served, made
}
