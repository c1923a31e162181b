//go:build linux

package e2e

import (
	"encoding/json"
	"os/exec"
	"slices"
	"testing"

	printed "github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/verdict/compare"
)

// compared is what measure --compare --json says of two ways.
type compared struct {
	Late       *printed.Late
	Directions []struct {
		First, Second comparedWay
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

type comparedWay struct {
	Goodput  float64   `json:"goodput_bps"`
	Goodputs []float64 `json:"goodputs_bps"`
	MSS      int       `json:"mss_bytes"`
	MTU      int       `json:"path_mtu_bytes"`
	NearBusy float64   `json:"near_host_cpu_ratio"`
}

// compareWays runs measure --compare on a lab, inside its VPN against outside.
func compareWays(t *testing.T, path string, flags ...string) (doc compared) {
	t.Helper()
	program, err := fullpipe()
	if err != nil {
		t.Fatal(err)
	}
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

// Both overlays are seen for what they are: how large packets are inside and outside, and
// that gateways with a budget carry less. On a busy machine it stays open whether that is
// the gateways' doing or the hosts'.
func TestInsideAgainstOutside(t *testing.T) {
	for _, tt := range []struct {
		path           string
		mtu, mss       int
		slower         string // "" where a short test on a busy machine cannot show it
		possible       compare.Cause
		overheadAtMost float64
	}{
		{"rate=15mbit,rtt=10ms,vpn=gateway,crypto=2mbit/40packets", 1438, 1386, "first", compare.Capacity, 1448.0 / 1386},
		{"rate=15mbit,rtt=10ms,vpn=wireguard", 1420, 1368, "", "", 1448.0 / 1368},
	} {
		t.Run(tt.path, func(t *testing.T) {
			t.Parallel()
			doc := compareWays(t, tt.path, "--time", "600ms", "--rounds", "2")
			if len(doc.Directions) != 1 {
				t.Fatalf("%+v", doc)
			}
			d := doc.Directions[0]
			for _, w := range []struct {
				comparedWay
				mtu, mss int
			}{{d.First, tt.mtu, tt.mss}, {d.Second, 1500, 1448}} {
				if w.MTU != w.mtu || w.MSS != w.mss || len(w.Goodputs) != 4 {
					t.Errorf("%+v, want path MTU %d and segments of %d", w.comparedWay, w.mtu, w.mss)
				}
			}
			if tt.slower != "" && (d.Slower != tt.slower || d.Cause != tt.possible && !slices.Contains(d.Candidates,
				tt.possible)) {
				t.Errorf("the slower is %q because of %s %v, want %q and %s", d.Slower, d.Cause, d.Candidates, tt.slower,
					tt.possible)
			}
			for _, e := range d.Explanations {
				if e.Cause == compare.Overhead && e.High > tt.overheadAtMost+1e-6 {
					t.Errorf("overhead makes × %.4f, at most %.4f is possible", e.High, tt.overheadAtMost)
				}
			}
		})
	}
}
