//go:build linux

package lab

import (
	"context"
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/link"
	"github.com/fullpipe-net/fullpipe/internal/testenv"
	"github.com/fullpipe-net/fullpipe/internal/testenv/must"
)

// The host's stack determines the window scale for all programs; factor= overrides it.
func TestLab_WindowScaleOfStack(t *testing.T) {
	testenv.Need(t, testenv.Lab)
	for _, test := range []struct {
		stack  string
		factor int
		flags  []string
	}{
		{"far.stack=windows-10", 8, nil}, {"far.stack=macos", 6, nil}, {"far.factor=0", 0, nil},
		{"far.factor=0", 0, []string{"-w", "200K"}}, {"far.stack=server-2012,far.factor=0", 0, []string{"-w", "200K"}},
		{"far.stack=windows-xp,far.factor=11", 11, nil}, {"far.scaling=off", -1, nil},
	} {
		t.Run(test.stack, func(t *testing.T) {
			t.Parallel()
			path := must.Get(link.Parse("rate=20mbit,rtt=2ms," + test.stack))(t)
			name := filepath.Join(t.TempDir(), "middle.pcap")
			file := must.Get(os.Create(name))(t)
			defer file.Close()
			l := must.Get(Start(context.Background(), Config{Path: path, Tap: file}))(t)
			defer l.Close()
			iperf3(t, l, append([]string{"-n", "100K"}, test.flags...)...)
			must.Do(t, l.Close())
			factors := offered(t, name)
			if len(factors) < 2 {
				t.Fatalf("captured %d SYN-ACKs", len(factors))
			}
			for _, f := range factors {
				if f != test.factor {
					t.Errorf("scale factors %v were offered, want %d", factors, test.factor)
				}
			}
		})
	}
}

// offered returns the window scales of a capture's SYN-ACKs from far; -1 without one.
func offered(t *testing.T, name string) (factors []int) {
	t.Helper()
	data := must.Get(os.ReadFile(name))(t)
	for at := 24; at+16 <= len(data); {
		kept := int(binary.LittleEndian.Uint32(data[at+8:]))
		packet := data[at+16 : at+16+kept]
		at += 16 + kept
		f, ok := link.Inspect(packet)
		if !ok || f.Protocol != 6 || f.Transport == 0 {
			continue
		}
		tcp := packet[f.Transport:]
		const synAck = 0x12
		if tcp[13]&0x3f != synAck {
			continue
		}
		factors = append(factors, scaleOf(tcp[:int(tcp[12]>>4)*4]))
	}
	return factors
}

func scaleOf(tcp []byte) int {
	const end, nop, scale = 0, 1, 3
	for at := 20; at < len(tcp) && tcp[at] != end; {
		switch {
		case tcp[at] == nop:
			at++
		case tcp[at] == scale:
			return int(tcp[at+2])
		default:
			at += max(int(tcp[at+1]), 2)
		}
	}
	return -1
}

// Each connection gets its own rate, however many there are.
func TestLab_RatePerConnection(t *testing.T) {
	const bound = 8e6 // bit/s at the IP layer
	for streams, flag := range map[int]string{1: "1", 2: "2"} {
		t.Run(flag, func(t *testing.T) {
			t.Parallel()
			l := startLab(t, "rate=50mbit,rtt=4ms,flow=8mbit")
			s := iperf3(t, l, "-t", "2", "-P", flag)
			most := float64(streams) * bound * 1448 / 1500
			if got := s.End.Received.BitsPerSecond; got > 1.03*most || got < 0.5*most {
				t.Errorf("%.2f Mbit/s, want %.2f", got/1e6, most/1e6)
			}
		})
	}
}

// TestLab_InitialWindow: a connection starts with the stack's initial window in any program.
func TestLab_InitialWindow(t *testing.T) {
	for stack, want := range map[string]string{"server-2012": "cwnd:4", "windows-10": "cwnd:10", "linux-6.1": "cwnd:10"} {
		t.Run(stack, func(t *testing.T) {
			t.Parallel()
			l := startLab(t, "rate=20mbit,rtt=5ms,near.stack="+stack)
			must.Get(l.Far.Start(Command{Args: []string{"iperf3", "-s", "-1"}}))(t)
			awaitListener(t, l.Far)
			out, err := l.Near.Output("bash", "-c", "exec 3<>/dev/tcp/$FULLPIPE_FAR/5201; ss -tinH dst $FULLPIPE_FAR | "+
				"grep -o 'cwnd:[0-9]*'")
			if got := strings.TrimSpace(string(out)); err != nil || got != want {
				t.Errorf("%q, %v; want %s", got, err, want)
			}
		})
	}
}
