package live

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// Kernel TCP in the lab: loss at random and queues of a few packets are no policer, also
// where the rate they leave happens to be steady.
func TestRandomLossIsNoPolicer(t *testing.T) {
	files, err := filepath.Glob("testdata/congestion_*.json.gz")
	if err != nil || len(files) < 15 {
		t.Fatalf("%d recorded transfers, %v", len(files), err)
	}
	policers := 0
	for _, name := range files {
		v := Judge(recorded(t, name))
		policer := v.Limiter == verdict.Congestion && v.Subtype == verdict.Policer
		if policer && !strings.Contains(name, "policer") {
			t.Errorf("%s: a policer, %v", filepath.Base(name), v.Evidence)
		}
		if policer {
			policers++
		}
	}
	if policers < 3 {
		t.Errorf("%d policers found", policers)
	}
}

// TestJudge_PolicerByLossDispersion checks cases with equal rate and equal loss that differ in how many segments are
// lost at once.
func TestJudge_PolicerByLossDispersion(t *testing.T) {
	losing := func(lost func(i int) int64) *transfer.Result {
		var sum int64
		return steady(3e6, 60*ms, func(i int, s, _ *transfer.Sample) {
			sum += lost(i)
			s.Retransmitted, s.RetransmittedBytes = sum, sum*1448
			s.NotSent, s.Cwnd = 1<<20, s.InFlight
		})
	}
	for _, c := range []struct {
		name string
		lost func(i int) int64
		want string
	}{
		{"one at a time, irregularly", func(i int) int64 { return int64(i * 7919 % 101 / 50) }, ""},
		{"one at a time, regularly", func(i int) int64 { return int64(i % 2) }, ""},
		{"ten at once", func(i int) int64 {
			if i%20 == 7 {
				return 10
			}
			return 0
		}, verdict.Policer},
	} {
		v := Judge(losing(c.lost))
		if v.Limiter != verdict.Congestion || v.Subtype != c.want {
			t.Errorf("%s: %s (%s), want congestion (%s); %v", c.name, v.Limiter, v.Subtype, c.want, v.Evidence)
		}
	}
}
