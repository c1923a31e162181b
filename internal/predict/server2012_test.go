package predict

import (
	"slices"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/audit"
	"github.com/fullpipe-net/fullpipe/internal/catalog"
	"github.com/fullpipe-net/fullpipe/internal/link"
	"github.com/fullpipe-net/fullpipe/internal/plan"
	"github.com/fullpipe-net/fullpipe/internal/testenv/must"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// TestServer2012Agrees checks that plan, predict and audit say the same of a Server 2012 as it comes: windows up to
// 16 MB. A Cygwin build on it is bound by its own buffers.
func TestServer2012Agrees(t *testing.T) {
	for _, c := range []struct {
		text    string
		rateBps float64
		rtt     time.Duration
		limiter verdict.Name
		capped  bool // by the largest window of autotuning level Normal
	}{
		{"rate=200mbit,rtt=90ms,stack=server-2012", 200e6, 90 * time.Millisecond, verdict.Bottleneck, false},
		{"rate=3gbit,rtt=70ms,stack=server-2012", 3e9, 70 * time.Millisecond, verdict.ReceiverWindow, true},
	} {
		path := must.Get(link.Parse(c.text))(t)
		answer := must.Get(Transfer(path, Setup{}))(t)
		target, _ := plan.ParseTarget("server-2012")
		planned, err := plan.New(plan.Path{RateBps: c.rateBps, RTT: c.rtt}, target, plan.Options{})
		if err != nil {
			t.Fatal(err)
		}
		snapshot := &audit.Snapshot{System: catalog.Windows, Version: "6.2.9200",
			Values: map[string]string{"AutoTuningLevelLocal": "Normal"}}
		found := audit.Judge(snapshot, audit.Path{RateBps: c.rateBps, RTT: c.rtt})
		limits := slices.ContainsFunc(found, func(f audit.Finding) bool { return f.Grade == audit.Limits })
		if answer.Limiter != c.limiter || limits != c.capped || len(planned.Warnings) > 0 != c.capped {
			t.Errorf("%s: predict %s, audit %+v, plan %v", c.text, answer.Limiter, found, planned.Warnings)
		}
		if !c.capped && answer.Typical < 0.9*planned.ExpectedBps {
			t.Errorf("%s: predict %.3g, plan %.3g bit/s", c.text, answer.Typical, planned.ExpectedBps)
		}
		if c.capped && answer.WindowBytes != plan.AutotuningWindow("Normal") {
			t.Errorf("%s: a window of %d", c.text, answer.WindowBytes)
		}
	}
}
