//go:build linux

package harness

import (
	"bytes"
	"encoding/json"
	"os/exec"
	"slices"
	"testing"
)

// SweepReport is the part of `sweep --json` that the tests read.
type SweepReport struct {
	Complete    bool
	Interrupted bool
	BytesSent   int64 `json:"bytes_sent"`
	Paths       []struct {
		RTT      float64 `json:"rtt_min_s"`
		Capacity float64 `json:"capacity_bps"`
		BDP      float64 `json:"bdp_bytes"`
	}
	Cells []SweepCell
}

// SweepCell is one cell of the grid.
type SweepCell struct {
	Direction     string
	Send          int        `json:"send_buffer_bytes"`
	Receive       int        `json:"receive_buffer_bytes"`
	Goodput       float64    `json:"goodput_bps"`
	CI95          [2]float64 `json:"ci95_bps"`
	Runs          []float64  `json:"runs_bps"`
	Tight         bool
	Limiter       string
	SendBuffer    SweepBuffer `json:"send_buffer"`
	ReceiveBuffer SweepBuffer `json:"receive_buffer"`
}

// SweepBuffer is a socket buffer as the kernel granted it.
type SweepBuffer struct {
	Effective int `json:"effective_bytes"`
	Clipped   bool
}

// At returns the cell of two buffer sizes, or a zero cell.
func (s *SweepReport) At(send, receive int) SweepCell {
	i := slices.IndexFunc(s.Cells, func(c SweepCell) bool { return c.Send == send && c.Receive == receive })
	if i < 0 {
		return SweepCell{}
	}
	return s.Cells[i]
}

// SweepCommand returns a command that runs `sweep` in a lab.
func SweepCommand(t *testing.T, profile string, more ...string) *exec.Cmd {
	t.Helper()
	program := Program(t)
	cmd := exec.CommandContext(t.Context(), program, append([]string{"sweep", "lab:" + profile, "--json"}, more...)...)
	return cmd
}

// RunSweep runs the command and returns its report.
func RunSweep(t *testing.T, cmd *exec.Cmd) (doc SweepReport) {
	t.Helper()
	var out, problems bytes.Buffer
	cmd.Stdout = &out
	cmd.Stderr = &problems
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v: %v: %s%s", cmd.Args, err, out.String(), problems.String())
	}
	if err := json.Unmarshal(out.Bytes(), &doc); err != nil {
		t.Fatalf("%v: %s", err, out.String())
	}
	return doc
}
