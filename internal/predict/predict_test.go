package predict

import (
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/limiter"
	"github.com/fullpipe-net/fullpipe/internal/link"
)

func TestLimiter(t *testing.T) {
	for _, c := range []struct {
		path  string
		setup Setup
		want  limiter.Name
		least float64 // Mbit/s
		most  float64
	}{
		{"rate=20mbit,rtt=80ms", Setup{}, limiter.Bottleneck, 18.5, 19.4},
		{"rate=20mbit,rtt=80ms", Setup{ReceiveBuffer: 32 << 10}, limiter.ReceiverWindow, 3.2, 4.2},
		{"rate=100mbit,rtt=40ms,stack=windows-xp", Setup{}, limiter.SendBuffer, 1.5, 1.75},
		{"rate=100mbit,rtt=40ms,near.stack=windows-xp", Setup{WriteBytes: 16384}, limiter.SendBuffer, 4.6, 5.1},
		{"rate=100mbit,rtt=80ms,stack=server-2012", Setup{}, limiter.ReceiverWindow, 6, 6.6},
		{"rate=100mbit,rtt=40ms,loss=1%", Setup{}, limiter.Congestion, 2, 6},
		{"rate=100mbit,rtt=40ms,loss=1%", Setup{Congestion: "bbr"}, limiter.Bottleneck, 85, 96},
		{"rate=100mbit,rtt=80ms", Setup{Bytes: 100e3}, limiter.SlowStart, 1, 7},
		{"rate=10mbit,rtt=10ms", Setup{Time: 5 * time.Second, Connections: 4}, limiter.Bottleneck, 9, 9.7},
	} {
		path, err := link.Parse(c.path)
		if err != nil {
			t.Fatal(err)
		}
		a, err := Transfer(path, c.setup)
		if err != nil {
			t.Fatal(err)
		}
		if a.Limiter != c.want || a.Typical < c.least*1e6 || a.Typical > c.most*1e6 || a.Low > a.Typical || a.High < a.Typical {
			t.Errorf("%s %+v: %.3g (%.3g to %.3g) Mbit/s, %s, gain %.3g, next %+v, caps %v", c.path, c.setup, a.Typical/1e6, a.Low/1e6, a.High/1e6,
				a.Limiter, a.Gain, a.Next, a.Caps)
		}
	}
}

func BenchmarkTransfer(b *testing.B) {
	for _, text := range []string{"rate=100mbit,rtt=40ms", "rate=100mbit,rtt=40ms,loss=0.1%", "cloud-10g-70ms,loss=0.01%"} {
		b.Run(text, func(b *testing.B) {
			path, err := link.Parse(text)
			if err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				if _, err := Transfer(path, Setup{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
