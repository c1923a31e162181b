//go:build linux

package harness

import (
	"encoding/json"
	"os/exec"
	"testing"

	printed "github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/verdict/compare"
)

// CompareReport is the part of `measure --compare --json` that the tests read.
type CompareReport struct {
	Late       *printed.Late
	Directions []struct {
		First, Second ComparedPath
		Gain          struct {
			Factor float64
			CI95   [2]float64
		} `json:"second_over_first"`
		Slower       string
		Cause        compare.Cause
		Candidates   []compare.Cause
		Explanations []struct {
			Cause compare.Cause
			High  float64 `json:"factor_high"`
		}
	}
}

// ComparedPath is one of the two paths.
type ComparedPath struct {
	Goodput  float64   `json:"goodput_bps"`
	Goodputs []float64 `json:"goodputs_bps"`
	MSS      int       `json:"mss_bytes"`
	MTU      int       `json:"path_mtu_bytes"`
	NearBusy float64   `json:"near_host_cpu_ratio"`
}

// CompareVPN runs `measure --compare` in a lab, inside its VPN against outside.
func CompareVPN(t *testing.T, path string, flags ...string) (doc CompareReport) {
	t.Helper()
	program := Program(t)
	args := append([]string{"measure", "--compare", "lab:" + path, "--json"}, flags...)
	out, err := exec.CommandContext(t.Context(), program, args...).Output()
	if err == nil {
		err = json.Unmarshal(out, &doc)
	}
	if err != nil {
		t.Fatalf("%v: %v\n%s", args, err, out)
	}
	return doc
}
