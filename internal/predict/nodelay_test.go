package predict

import (
	"slices"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/link"
	"github.com/fullpipe-net/fullpipe/internal/plan"
	"github.com/fullpipe-net/fullpipe/internal/testenv/must"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// TestTransfer_WarnsOfNoDelay checks that a prediction for a send buffer warns of the effect of TCP_NODELAY, if any.
func TestTransfer_WarnsOfNoDelay(t *testing.T) {
	for _, c := range []struct {
		path  string
		setup Setup
		said  bool
	}{
		{"rate=70mbit,rtt=30ms", Setup{SendBuffer: 48 << 10, WriteBytes: 9000}, true},
		{"rate=70mbit,rtt=30ms", Setup{SendBuffer: 48 << 10, WriteBytes: 9000, NoDelay: true}, false},
		{"rate=70mbit,rtt=30ms", Setup{SendBuffer: 48 << 10}, false}, // large writes overrun it all the same
		{"rate=70mbit,rtt=30ms", Setup{WriteBytes: 9000}, false},
	} {
		path := must.Get(link.Parse(c.path))(t)
		a := must.Get(Transfer(path, c.setup))(t)
		said := slices.ContainsFunc(a.Warnings, func(n verdict.Note) bool { return n.Code == verdict.FirmWithNoDelay })
		if said != c.said {
			t.Errorf("%s %+v: %q", c.path, c.setup, a.Warnings)
		}
	}
}

// TestOneBDP checks that plan and predict print the same bandwidth-delay product for a path.
func TestOneBDP(t *testing.T) {
	for text, stated := range map[string]plan.Path{
		"rate=70mbit,rtt=110ms":                       {RateBps: 70e6, RTT: 110 * time.Millisecond},
		"rate=3mbit,rtt=9ms,stack=windows-xp":         {RateBps: 3e6, RTT: 9 * time.Millisecond},
		"rate=400mbit,rtt=21ms,overhead=38,loss=0.1%": {RateBps: 400e6, RTT: 21 * time.Millisecond},
	} {
		path := must.Get(link.Parse(text))(t)
		a := must.Get(Transfer(path, Setup{Time: time.Second}))(t)
		target, _ := plan.ParseTarget("linux")
		p, err := plan.New(stated, target, plan.Options{})
		if err != nil || a.BDPBytes != int64(p.BDPBytes) {
			t.Errorf("%s: predict %d, plan %.0f bytes (%v)", text, a.BDPBytes, p.BDPBytes, err)
		}
	}
}
