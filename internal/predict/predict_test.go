package predict

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/link"
	"github.com/fullpipe-net/fullpipe/internal/testenv/must"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

func TestLimiter(t *testing.T) {
	for _, c := range []struct {
		path  string
		setup Setup
		want  verdict.Name
		least float64 // Mbit/s
		most  float64
	}{
		{"rate=20mbit,rtt=80ms", Setup{}, verdict.Bottleneck, 18.5, 19.4},
		{"rate=20mbit,rtt=80ms", Setup{ReceiveBuffer: 32 << 10}, verdict.ReceiverWindow, 3.2, 4.2},
		{"rate=100mbit,rtt=40ms,stack=windows-xp", Setup{}, verdict.SendBuffer, 1.5, 1.75},
		{"rate=100mbit,rtt=40ms,near.stack=windows-xp", Setup{WriteBytes: 16384}, verdict.SendBuffer, 4.6, 5.1},
		{"rate=5mbit,rtt=8ms,stack=windows-95,far.delack=100ms,far.window=2600", Setup{}, verdict.ReceiverWindow, 0.17, 0.2},
		{"lan-10m,far.delack=200ms,far.window=2920", Setup{}, verdict.ReceiverWindow, 6, 7},
		{"wan-80ms", Setup{}, verdict.ReceiverWindow, 6, 6.6},
		{"wan-80ms", Setup{ReceiveBuffer: 600_000}, verdict.ReceiverWindow, 70, 80},
		{"wan-80ms", Setup{Direction: transfer.Down}, verdict.SendBuffer, 6.2, 6.7},
		{"rate=100mbit,rtt=80ms,stack=server-2012,app=cygwin", Setup{}, verdict.Mixed, 6, 6.6},
		{"rate=100mbit,rtt=40ms,loss=1%", Setup{}, verdict.Congestion, 2, 6},
		{"rate=100mbit,rtt=40ms,loss=1%", Setup{Congestion: "bbr"}, verdict.Bottleneck, 85, 96},
		{"rate=100mbit,rtt=80ms", Setup{Bytes: 100e3}, verdict.SlowStart, 1, 7},
		{"rate=20mbit,rtt=20ms,vpn=gateway,crypto=8mbit", Setup{}, verdict.Bottleneck, 7.3, 7.6},
		{"rate=20mbit,rtt=20ms,vpn=wireguard", Setup{}, verdict.Bottleneck, 17.8, 18.5},
		{"rate=100mbit,rtt=80ms,stack=windows-2000", Setup{SendBuffer: 17520}, verdict.Mixed, 1.6, 1.8},
		{"rate=1gbit,rtt=40ms,police=50mbit/250kB", Setup{}, verdict.Congestion, 40, 49},
		{"rate=10mbit,rtt=10ms", Setup{Time: 5 * time.Second, Connections: 4}, verdict.Bottleneck, 9, 9.7},
	} {
		path := must.Get(link.Parse(c.path))(t)
		a := must.Get(Transfer(path, c.setup))(t)
		if a.Limiter != c.want || a.Typical < c.least*1e6 || a.Typical > c.most*1e6 || a.Low > a.Typical ||
			a.High < a.Typical {
			t.Errorf("%s %+v: %.3g (%.3g to %.3g) Mbit/s, %s, gain %.3g, next %+v, caps %v", c.path, c.setup, a.Typical/1e6,
				a.Low/1e6, a.High/1e6,
				a.Limiter, a.Gain, a.Next, a.Caps)
		}
		if a.Limiter == verdict.Mixed && !slices.Equal(a.Candidates, []verdict.Name{verdict.ReceiverWindow,
			verdict.SendBuffer}) {
			t.Errorf("%s %+v: candidates %v", c.path, c.setup, a.Candidates)
		}
	}
}

// A receiver that bounds its window from the handshake on offers a factor of 0; a buffer
// that a program asks for, a window of its own and a stripped option are other things.
func TestSubtypesOfReceivers(t *testing.T) {
	for _, c := range []struct {
		path  string
		setup Setup
		want  string
	}{
		{"wan-80ms", Setup{}, verdict.ScaleZero},
		{"rate=60mbit,rtt=120ms,far.stack=server-2019,far.app=cygwin", Setup{}, verdict.ScaleZero},
		{"rate=40mbit,rtt=150ms,far.stack=server-2012,far.app=cygwin,far.window=32KiB", Setup{}, verdict.ScaleZero},
		{"wan-80ms,strip=wscale", Setup{ReceiveBuffer: 1 << 20}, verdict.Unscaled},
		{"wan-80ms", Setup{ReceiveBuffer: 100_000}, verdict.Fixed},
		{"wan-80ms", Setup{Window: 50_000}, verdict.Fixed},
		{"wan-80ms,far.window=128KiB", Setup{}, verdict.Fixed},
		{"rate=100mbit,rtt=80ms,far.window=64512", Setup{}, verdict.Fixed},
		{"rate=100mbit,rtt=80ms,near.stack=server-2012,near.app=cygwin,far.stack=linux-6.1,far.window=30KiB",
			Setup{}, verdict.Fixed},
	} {
		path := must.Get(link.Parse(c.path))(t)
		a, err := Transfer(path, c.setup)
		if err != nil || a.Limiter != verdict.ReceiverWindow || a.Subtype != c.want {
			t.Errorf("%s %+v: %s %q, not %q (%v)", c.path, c.setup, a.Limiter, a.Subtype, c.want, err)
		}
	}
}

func BenchmarkTransfer(b *testing.B) {
	for _, text := range []string{"rate=100mbit,rtt=40ms", "rate=100mbit,rtt=40ms,loss=0.1%",
		"cloud-10g-70ms,loss=0.01%"} {
		b.Run(text, func(b *testing.B) {
			path := must.Get(link.Parse(text))(b)
			for b.Loop() {
				must.Get(Transfer(path, Setup{}))(b)
			}
		})
	}
}

// Extreme paths and setups give a prediction soon.
func TestExtremes(t *testing.T) {
	for _, text := range []string{"rate=unlimited,rtt=0ms", "rate=unlimited,rtt=100ms,loss=1%", "rate=100bit,rtt=120s",
		"rate=1tbit,rtt=1s,loss=0.001%",
		"rate=10mbit,rtt=10ms,loss=100%", "rate=10mbit,rtt=10ms,loss=50%/1000", "rate=1gbit,rtt=1us,queue=1packet,jitter=1us",
		"policed,jitter=30ms",
		"wifi", "lte", "modem-14.4k", "vpn-30m,crypto=1mbit/1packet",
		"rate=10mbit,rtt=10ms,mtu=576,strip=wscale+sack+timestamps,duplex=half"} {
		path := must.Get(link.Parse(text))(t)
		for _, s := range []Setup{{}, {Bytes: 1}, {Bytes: 1 << 62, Congestion: "bbr"}, {Time: time.Nanosecond},
			{Time: 1 << 62}, {Connections: 50, Congestion: "reno"},
			{SendBuffer: 1, ReceiveBuffer: 1, WriteBytes: 1, MSS: 1}, {Direction: transfer.Down, Window: 1,
				ReceiveBuffer: 1 << 30}} {
			a := must.Get(Transfer(path, s))(t)
			if !(a.Low >= 0 && a.Low <= a.Typical && a.Typical <= a.High) || a.Limiter == "" || a.Time.High < 0 ||
				a.Next != nil && !(a.Next.Typical >= 0) {
				t.Errorf("%s %+v: %+v", text, s, a)
			}
		}
	}
}

func TestTransfer_RefusesUnknownModels(t *testing.T) {
	path := must.Get(link.Parse("wan-40ms"))(t)
	for argument, s := range map[string]Setup{"congestion": {Congestion: "vegas"}, "connections": {Connections: 100000}} {
		var wrong *ArgumentError
		if _, err := Transfer(path, s); !errors.As(err, &wrong) || wrong.Argument != argument || wrong.Try() == "" {
			t.Errorf("%s: %v", argument, err)
		}
	}
}

// The application note's surface, in its own words: throughput over send buffer and
// window at 12 ms with writes of 16 KB stops growing at 64 kB without large windows; with
// them it is best where both equal the product of rate and delay, and more adds nothing.
func TestTransfer_PublishedSurface(t *testing.T) {
	goodput := func(options string, send, window int) float64 {
		t.Helper()
		path, err := link.Parse("rate=100mbit,rtt=12ms,overhead=38,queue=1bdp,stack=windows-xp" + options)
		if err != nil {
			t.Fatal(err)
		}
		a, err := Transfer(path, Setup{SendBuffer: send, Window: window, ReceiveBuffer: 1 << 20, WriteBytes: 16384})
		if err != nil {
			t.Fatal(err)
		}
		return a.Typical / 1e6
	}
	const bdp = 151840
	for _, window := range []int{65535, bdp, 2 * bdp} {
		small, edge, large := goodput(",strip=wscale", 32<<10, window), goodput(",strip=wscale", 64<<10, window),
			goodput(",strip=wscale", bdp, window)
		if edge < 1.8*small || large > 1.02*edge {
			t.Errorf("without scaling, window %d: %.3g, %.3g, %.3g Mbit/s with 32, 64 and 148 KiB", window, small, edge, large)
		}
	}
	best := goodput("", bdp, bdp)
	if less := goodput("", bdp/2, bdp); less > 0.6*best {
		t.Errorf("half the send buffer gives %.3g of %.3g Mbit/s", less, best)
	}
	if less := goodput("", bdp, bdp/2); less > 0.6*best {
		t.Errorf("half the window gives %.3g of %.3g Mbit/s", less, best)
	}
	if more := goodput("", 2*bdp, 2*bdp); best < 90 || more > 1.03*best {
		t.Errorf("%.3g Mbit/s with the product, %.3g with twice as much", best, more)
	}
}

// TestTransfer_WarnsThatBuffersFollowLinux checks that a receive buffer on another system's stack is warned of where
// Linux makes another window of it, and that the path setting which the warning names gives the buffer as the window.
func TestTransfer_WarnsThatBuffersFollowLinux(t *testing.T) {
	for _, c := range []struct {
		path    string
		setup   Setup
		warning string
		window  int
	}{
		{"rate=10mbit,rtt=100ms,stack=windows-95", Setup{ReceiveBuffer: 2920}, "", 2920},
		{"rate=10mbit,rtt=100ms,stack=windows-2000", Setup{ReceiveBuffer: 17520}, "far.window=17520", 20440},
		{"rate=10mbit,rtt=100ms,stack=windows-2000", Setup{ReceiveBuffer: 17520, Direction: transfer.Down},
			"near.window=17520", 20440},
		{"rate=10mbit,rtt=100ms,stack=windows-2000,far.window=17520", Setup{}, "", 17520},
		{"rate=10mbit,rtt=100ms", Setup{ReceiveBuffer: 17520}, "", 20272},
	} {
		path := must.Get(link.Parse(c.path))(t)
		a := must.Get(Transfer(path, c.setup))(t)
		end := ""
		for _, n := range a.Warnings {
			end += string(n.Code) + " " + n.Words[1] + fmt.Sprintf(".window=%.0f", n.Values["buffer_bytes"])
		}
		want := c.warning
		if want != "" {
			want = string(verdict.WholeBufferOffered) + " " + want
		}
		if a.WindowBytes != c.window || end != want {
			t.Errorf("%s, %+v: a window of %d, %+v", c.path, c.setup, a.WindowBytes, a.Warnings)
		}
	}
}

// TestTransfer_WithoutAWindowBelowTwoSegments promises the link's rate: the ACK timer's delay goes with the window.
func TestTransfer_WithoutAWindowBelowTwoSegments(t *testing.T) {
	for _, c := range []struct {
		path   string
		buffer int
		least  float64
	}{
		{"lan-10m,far.delack=200ms", 2306, 7.5e6},
		{"rate=20mbit,rtt=5ms,far.delack=100ms,stack=windows-95", 2600, 15e6},
	} {
		path := must.Get(link.Parse(c.path))(t)
		a := must.Get(Transfer(path, Setup{ReceiveBuffer: c.buffer}))(t)
		if a.Next == nil || a.Next.Typical < c.least {
			t.Errorf("%s: %.4g bit/s, without %s %+v, want %.3g or more", c.path, a.Typical, a.Limiter, a.Next, c.least)
		}
	}
}
