//go:build linux

package harness

import (
	"bytes"
	"encoding/json"
	"errors"
	"os/exec"
	"testing"

	pages "github.com/fullpipe-net/fullpipe/internal/record"
)

// RFC6349Report is the part of `rfc6349 --json` that the tests read.
type RFC6349Report struct {
	Late        *pages.Late
	Verdict     string
	Interrupted bool
	Path        struct {
		MTU int     `json:"path_mtu_bytes"`
		RTT float64 `json:"rtt_min_s"`
		MSS int     `json:"mss_bytes"`
	}
	Directions []struct {
		Direction  string
		Verdict    string
		Bottleneck struct {
			Bps     float64    `json:"ip_bps"`
			Range   [2]float64 `json:"range_bps"`
			AtLeast bool       `json:"at_least"`
			Method  string
		}
		MaxTCP   float64 `json:"max_tcp_bps"`
		BDP      float64 `json:"bdp_bytes"`
		Criteria []struct{ Name, Verdict, Reason string }
		Tests    []RFC6349Test
		Frames   []struct {
			Bytes   int `json:"frame_bytes"`
			Verdict string
			Reason  string
		}
	}
	Formulas []struct{ Name, Text string }
	Elapsed  float64 `json:"elapsed_s"`
}

// RFC6349Test is the part of one direction in the report.
type RFC6349Test struct {
	Kind    string
	Window  int        `json:"window_bytes"`
	Share   float64    `json:"bdp_ratio"`
	Goodput float64    `json:"steady_goodput_bps"`
	CI95    [2]float64 `json:"ci95_bps"`
	Limiter string
	Runs    []struct {
		Ratio      float64  `json:"transfer_time_ratio"`
		Settled    float64  `json:"steady_transfer_time_ratio"`
		Sent       int64    `json:"sent_bytes"`
		Efficiency *float64 `json:"efficiency_ratio"`
		Delay      *float64 `json:"buffer_delay_ratio"`
	}
}

// RFC6349Command returns a command that runs `rfc6349` in a lab.
func RFC6349Command(t *testing.T, profile string, more ...string) *exec.Cmd {
	t.Helper()
	program := Program(t)
	return exec.CommandContext(t.Context(), program, append([]string{"rfc6349", "lab:" + profile, "--json"}, more...)...)
}

// RunRFC6349 runs the command and returns its report and its exit status. Status 3, not signed off, is no failure.
func RunRFC6349(t *testing.T, cmd *exec.Cmd) (doc RFC6349Report, status int) {
	t.Helper()
	var out, problems bytes.Buffer
	cmd.Stdout = &out
	cmd.Stderr = &problems
	err := cmd.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		status = exit.ExitCode()
	}
	if err != nil && status != 3 && status != 130 {
		t.Fatalf("%v: %v: %s%s", cmd.Args, err, out.String(), problems.String())
	}
	if err := json.Unmarshal(out.Bytes(), &doc); err != nil {
		t.Fatalf("%v: %s%s", err, out.String(), problems.String())
	}
	return doc, status
}
