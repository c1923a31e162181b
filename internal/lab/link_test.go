//go:build linux

package lab

import (
	"strings"
	"testing"
)

func TestMTU(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ path, target, says string }{
		{"rate=20mbit,rtt=2ms,mtu=1400", "$FULLPIPE_FAR", "mtu = 1400"},
		{"rate=20mbit,rtt=2ms,mtu=1400", "$FULLPIPE_FAR6", "mtu=1400"},
		{"rate=20mbit,rtt=2ms,mtu=1400,icmp=drop", "$FULLPIPE_FAR", "100% packet loss"},
	} {
		t.Run(test.path+" "+test.target, func(t *testing.T) {
			t.Parallel()
			l := startLab(t, test.path)
			if out, err := l.Near.Output("sh", "-c", "ping -n -c 1 -M do -s 1300 "+test.target); err != nil {
				t.Errorf("a packet that fits: %v\n%s", err, out)
			}
			out, _ := l.Near.Output("sh", "-c", "ping -n -c 1 -W 0.3 -M do -s 1452 "+test.target+" 2>&1")
			if !strings.Contains(string(out), test.says) {
				t.Errorf("a packet that is too big:\n%s\nwant %q", out, test.says)
			}
			if up, _, err := l.Counters(); err != nil || up.DroppedMTU != 1 {
				t.Errorf("dropped %d for their size, want 1; %v", up.DroppedMTU, err)
			}
		})
	}
}

// TCP over a path that reports its MTU, segment by segment and in super-packets.
func TestLab_PathMTUDiscovery(t *testing.T) {
	t.Parallel()
	l := startLab(t, "rate=20mbit,rtt=2ms,mtu=1400")
	s := iperf3(t, l, "-n", "300K")
	up, _, err := l.Counters()
	if err != nil || s.End.Received.Bytes < 100<<10 || up.DroppedMTU == 0 {
		t.Errorf("received %v bytes, %d dropped for their size, %v", s.End.Received.Bytes, up.DroppedMTU, err)
	}
}

func TestLab_MiddleboxStripsOptions(t *testing.T) {
	t.Parallel()
	tests := []struct {
		path   string
		mss    int // 12 less with timestamps
		scaled bool
	}{
		{"", 1448, true},
		{",strip=timestamps", 1460, true},
		{",down.strip=timestamps", 1460, true},
		{",up.strip=wscale+sack", 1448, false},
		{",strip=wscale+sack+timestamps", 1460, false},
	}
	for _, test := range tests {
		t.Run(test.path, func(t *testing.T) {
			t.Parallel()
			l := startLab(t, "rate=20mbit,rtt=20ms"+test.path)
			s := iperf3(t, l, "-n", "1M", "-i", "0.1")
			window := 0
			for _, i := range s.Intervals {
				window = max(window, i.Streams[0].SndWnd)
			}
			if s.Start.MSS != test.mss || (window > 65535) != test.scaled {
				t.Errorf("MSS %d (want %d), window %d (scaled: want %v)", s.Start.MSS, test.mss, window, test.scaled)
			}
		})
	}
}

// The counters of a transfer add up, and the kernel retransmits the link's losses.
func TestLab_RetransmitsLosses(t *testing.T) {
	t.Parallel()
	l := startLab(t, "rate=20mbit,rtt=10ms,loss=1%,duplicate=0.5%,reorder=0.5%,jitter=2ms,seed=5")
	s := iperf3(t, l, "-n", "1M")
	up, _, err := l.Counters()
	if err != nil || s.End.Received.Bytes < 500<<10 {
		t.Fatalf("received %v bytes, %v", s.End.Received.Bytes, err)
	}
	if up.Lost == 0 || up.Duplicated == 0 || up.Reordered == 0 || up.Offered < up.Carried+up.DroppedQueue ||
		up.Delivered > up.Carried-up.Lost+up.Duplicated {
		t.Errorf("%+v", up)
	}
}

func TestLab_NarrowPaths(t *testing.T) {
	t.Parallel()
	for path, most := range map[string]float64{
		"rate=100mbit,rtt=5ms,police=10mbit/30kB": 10e6,
		"rate=10mbit,rtt=5ms,duplex=half":         10e6,
		"rate=10mbit,rtt=5ms,aggregate=4ms":       10e6,

		"rate=100mbit,rtt=5ms,vpn=gateway,crypto=10mbit": 10e6,
	} {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			s := iperf3(t, startLab(t, path), "-n", "1M")
			if got := s.End.Received.BitsPerSecond; got > most*1.05 || s.End.Received.Bytes < 500<<10 {
				t.Errorf("%v bytes at %v bit/s, want at most %v", s.End.Received.Bytes, got, most)
			}
		})
	}
}

func TestLab_Nested(t *testing.T) {
	t.Parallel()
	l := startLab(t, "rtt=1ms")
	inner := Command{Args: []string{"/proc/self/exe"}, Env: []string{userVariable + "=ping -n -c 1 $FULLPIPE_FAR"}}
	var out tail
	inner.Stdout, inner.Stderr = &out, &out
	// The path is looked up by the engine, which is this binary too.
	if status, err := l.Near.Run(inner); err != nil || status != 0 {
		t.Errorf("a lab in a lab: %d, %v\n%s", status, err, out.bytes)
	}
}
