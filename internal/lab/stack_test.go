//go:build linux

package lab

import (
	"encoding/json"
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/testenv/must"
)

// sent is iperf3's result of a transfer from near to far.
type sent struct {
	Intervals []struct {
		Streams []struct {
			SndWnd int `json:"snd_wnd"`
		} `json:"streams"`
	} `json:"intervals"`
	Start struct {
		MSS int `json:"tcp_mss_default"`
	} `json:"start"`
	End struct {
		Received struct {
			BitsPerSecond float64 `json:"bits_per_second"`
			Bytes         float64 `json:"bytes"`
		} `json:"sum_received"`
		Congestion string `json:"sender_tcp_congestion"`
	} `json:"end"`
}

// iperf3 runs a transfer over the lab's link. Its received bytes exclude data in flight at the sender's end.
func iperf3(t *testing.T, l *Lab, flags ...string) sent {
	t.Helper()
	must.Get(l.Far.Start(Command{Args: []string{"iperf3", "-s", "-1"}}))(t)
	awaitListener(t, l.Far)
	out, err := l.Near.Output(append([]string{"iperf3", "-J", "-c", l.Far.Addr.String()}, flags...)...)
	var s sent
	if err != nil || json.Unmarshal(out, &s) != nil {
		t.Fatalf("iperf3: %v\n%s", err, out)
	}
	return s
}

func awaitListener(t *testing.T, e *End) {
	t.Helper()
	if !poll(func() bool {
		listening := must.Get(e.Listening())(t)
		return listening
	}) {
		t.Fatal("nothing listens")
	}
}

func TestLab_WindowsOfStacks(t *testing.T) {
	tests := []struct {
		stack      string
		least, max int // the largest window: a segment more when short segments came, rounded up by the scale
		mss        int
		congestion string
	}{
		{"windows-95", 8760, 8760, 1460, "reno"},
		{"windows-2000", 17408, 19072, 1460, "reno"},
		{"windows-xp", 65408, 67072, 1460, "reno"},
		{"server-2012,app=cygwin", 64384, 66048, 1460, "reno"},
		{"server-2012", 100000, 16776960, 1460, "reno"},
		{"linux-6.1", 100000, 4 << 20, 1448, "cubic"},
		{"linux-6.18", 100000, 32 << 20, 1448, "cubic"},
		{"windows-10", 100000, 16776960, 1460, "cubic"},
		{"server-2025", 100000, 16776960, 1460, "cubic"},
		{"macos", 100000, 4194240, 1448, "cubic"},
		{"linux-6.18,far.factor=0", 60000, 65535, 1448, "cubic"},
		{"server-2012,app=cygwin,far.factor=0", 62780, 65535, 1460, "reno"},
	}
	for _, test := range tests {
		t.Run(test.stack, func(t *testing.T) {
			t.Parallel()
			l := startLab(t, "rate=20mbit,rtt=5ms,stack="+test.stack)
			s := iperf3(t, l, "-n", "1M", "-i", "0.1")
			window := 0
			for _, i := range s.Intervals {
				window = max(window, i.Streams[0].SndWnd)
			}
			if window < test.least || window > test.max || s.Start.MSS != test.mss || s.End.Congestion != test.congestion {
				t.Errorf("window %d (want %d to %d), MSS %d (want %d), %s (want %s)", window, test.least, test.max, s.Start.MSS,
					test.mss, s.End.Congestion, test.congestion)
			}
		})
	}
}
