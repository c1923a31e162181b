//go:build linux

package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/e2e/harness"
	"github.com/fullpipe-net/fullpipe/internal/watch"
	"github.com/fullpipe-net/fullpipe/internal/watch/paths"
)

// A period of stepPeriod represents a window of a little more than five minutes: the connections are real, the clock
// of the windows runs faster by stepFactor.
const (
	stepPeriod = time.Second
	stepFactor = 320
)

// pathWindowsProgram watches for FULLPIPE_E2E_SECONDS, adds its observations to the paths in FULLPIPE_E2E_KNOWN, and
// saves them there. It prints each change, the window and the event, on a line.
func pathWindowsProgram() error {
	length, err := time.ParseDuration(os.Getenv("FULLPIPE_E2E_SECONDS"))
	if err != nil {
		return err
	}
	file := os.Getenv("FULLPIPE_E2E_KNOWN")
	var known struct {
		Until time.Time
		Host  paths.Host
	}
	known.Until = time.Unix(1_790_000_000, 0)
	if text, err := os.ReadFile(file); err == nil {
		if err := json.Unmarshal(text, &known); err != nil {
			return err
		}
		known.Host.Restore()
	}
	ctx, cancel := context.WithTimeout(context.Background(), length)
	defer cancel()
	var windows watch.Windows
	n, began := 0, known.Until
	cfg := watch.Config{Match: watch.Match{Ports: []uint16{7000}}, Every: stepPeriod}
	err = watch.Run(ctx, cfg, func(v *watch.View) error {
		scaled := watch.View{At: v.At * stepFactor, Length: v.Length * stepFactor, Connections: v.Connections}
		for i := range scaled.Connections {
			c := *scaled.Connections[i].Connection
			c.FirstSeen *= stepFactor
			scaled.Connections[i].Connection = &c
			scaled.Connections[i].Length *= stepFactor
		}
		full := windows.Add(&scaled)
		if full == nil {
			return nil
		}
		n++
		known.Until = began.Add(scaled.At)
		for _, e := range known.Host.Add(known.Until, full) {
			text, err := json.Marshal(e)
			if err != nil {
				return err
			}
			fmt.Printf("%d %s\n", n, text)
		}
		return nil
	})
	if err != nil && ctx.Err() == nil {
		return err
	}
	fmt.Println("windows", n)
	text, err := json.Marshal(known)
	if err != nil {
		return err
	}
	return os.WriteFile(file, text, 0o600)
}

// TestBankWatchStep checks that a path whose real round trip grows by a fifth is reported within five windows, once
// and with no other event, and that an unchanged path is not reported.
func TestBankWatchStep(t *testing.T) {
	bankOnly(t)
	program := harness.Program(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "peers.py")
	if err := os.WriteFile(file, []byte(harness.PeersScript), 0o600); err != nil {
		t.Fatal(err)
	}
	watch := func(rtt string, seconds int) string {
		script := `until python3 -c 'import os,socket; socket.create_connection((os.environ["FULLPIPE_FAR"], 7000)).close()'
do sleep 0.1; done 2>/dev/null
while true; do python3 $PEERS client short; done & client=$!
` + harness.ProgramVariable + `=path-windows $SELF
kill $client`
		cmd := exec.Command(program, "lab", "rate=50mbit,rtt="+rtt, "--far", "python3 "+file+" serve drain", "--", "sh",
			"-euc", script)
		cmd.Env = append(os.Environ(), "PEERS="+file, "SELF="+self, fmt.Sprintf("FULLPIPE_E2E_SECONDS=%ds", seconds),
			"FULLPIPE_E2E_KNOWN="+filepath.Join(dir, "known"))
		return harness.Output(t, cmd)
	}
	asEver, step := watch("20ms", 75), watch("24ms", 8)
	var at int
	_, err = fmt.Sscan(step, &at)
	ok := !strings.Contains(asEver, "{") && err == nil && at <= 5 && strings.Count(step, "{\"") > 0 &&
		strings.Contains(step, `"rtt"`)
	record(t, bankRow{Section: "watch", Case: "a round trip of 20 ms that is 24 ms, in labs",
		Claim: "told within five windows, and nothing before", Measured: fmt.Sprintf("in window %d after it", at),
		Spread: "some 70 windows before; 1 s of the test is a window of 5 minutes", Verdict: passed(ok),
		Command: "make bank RUN=TestBankWatchStep"})
	if !ok {
		t.Errorf("as ever: %s\nafter the step: %s", asEver, step)
	}
}
