package report

import (
	"slices"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/plan"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/tune"
)

// TestSettingsStartFromWhatTheHostHas: a ceiling that somebody lowered is in the way,
// although the system's default is not.
func TestSettingsStartFromWhatTheHostHas(t *testing.T) {
	target, err := plan.ParseTarget("linux-6.18")
	if err != nil {
		t.Fatal(err)
	}
	d := &tune.Direction{Direction: transfer.Down, Chosen: &tune.Chosen{Setup: tune.Setup{Window: 509_696}},
		Path: tune.Path{BottleneckBps: 100e6, RTT: 40 * time.Millisecond, MSS: 1448, Window: 495_216}}
	names := func(values map[string]string) (all []string) {
		for _, s := range settings(d, &System{target, values}, nil) {
			if s.Host == "near" {
				all = append(all, s.Name)
			}
		}
		return all
	}
	const rmem = "net.ipv4.tcp_rmem"
	if got := names(map[string]string{rmem: "4096 131072 262144"}); !slices.Contains(got, rmem) {
		t.Errorf("with 256 KiB at the most: %v", got)
	}
	if got := names(nil); slices.Contains(got, rmem) {
		t.Errorf("with the system's defaults: %v", got)
	}
}
