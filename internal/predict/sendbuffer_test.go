package predict

import (
	"math"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/link"
	"github.com/fullpipe-net/fullpipe/internal/plan"
	"github.com/fullpipe-net/fullpipe/internal/testenv/must"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// TestTransfer_SmallSendBuffers checks the range against transfers in the lab (Linux 6.18, 6 s each, a busy machine):
// AFD buffers of a few segments, with receivers that acknowledge the last part of a segment at once or with the next.
func TestTransfer_SmallSendBuffers(t *testing.T) {
	for _, c := range []struct {
		path     string
		write    int
		measured float64 // Mbit/s
	}{
		{"rate=3mbit,rtt=19ms,near.stack=windows-2000", 0, 2.826},
		{"rate=3mbit,rtt=19ms,near.afd=8192", 0, 2.809},
		{"rate=3mbit,rtt=19ms,near.stack=windows-xp", 2048, 2.659},
		{"rate=3mbit,rtt=19ms,near.stack=windows-xp", 512, 2.686},
		{"rate=3mbit,rtt=19ms,stack=windows-xp", 0, 2.561},
		{"rate=3mbit,rtt=19ms,stack=windows-xp", 1460, 2.333},
		{"rate=3mbit,rtt=19ms,stack=windows-2000", 0, 2.413},
		{"rate=5mbit,rtt=33ms,near.afd=8192,far.window=65535", 0, 1.695},
		{"rate=2mbit,rtt=70ms,near.afd=16384,far.window=65535", 0, 1.590},
		{"rate=10mbit,rtt=11ms,near.afd=12288,far.window=65535", 0, 6.986},
		{"rate=20mbit,rtt=10ms,stack=windows-xp,near.afd=4096", 0, 8.21},
		{"rate=20mbit,rtt=30ms,stack=windows-xp", 0, 2.049},
		{"rate=20mbit,rtt=30ms,stack=windows-xp", 16384, 6.323},
	} {
		path := must.Get(link.Parse(c.path))(t)
		a := must.Get(Transfer(path, Setup{WriteBytes: c.write}))(t)
		if bps := c.measured * 1e6; bps < a.Low || bps > a.High {
			t.Errorf("%s, writes of %d: %.4g to %.4g bit/s, measured %.4g", c.path, c.write, a.Low, a.High, bps)
		}
	}
}

// TestTransfer_KnowsPlansSystems checks that predict knows every system of plan, and that both have the same goodput
// for its defaults.
func TestTransfer_KnowsPlansSystems(t *testing.T) {
	compared := 0
	for _, name := range append(plan.Targets(), "linux-5.10", "freebsd-14.2", "macos-14") {
		target := must.Get(plan.ParseTarget(name))(t)
		for _, text := range []string{"rate=3mbit,rtt=19ms", "rate=45mbit,rtt=65ms", "rate=800mbit,rtt=130ms"} {
			path, err := link.Parse(text + ",stack=" + name)
			if err != nil {
				t.Errorf("%s: %v", name, err)
				break
			}
			a, err := Transfer(path, Setup{Time: time.Hour, Direction: transfer.Up})
			if err != nil {
				t.Errorf("%s: %v", name, err)
				break
			}
			p, err := plan.New(plan.Path{RateBps: float64(path.Up.Rate), RTT: path.RTT}, target, plan.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if p.Now == nil {
				continue
			}
			compared++
			if math.Abs(a.Typical/p.Now.GoodputBps-1) > 0.08 {
				t.Errorf("%s, %s: predicted %.4g bit/s, planned %.4g", name, text, a.Typical, p.Now.GoodputBps)
			}
		}
	}
	if compared < 45 {
		t.Errorf("only %d were compared", compared)
	}
}
