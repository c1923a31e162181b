//go:build linux

package lab

import (
	"crypto/sha256"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"strings"
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/link"
	"github.com/fullpipe-net/fullpipe/internal/testenv/must"
)

// programVariable makes the test binary one end of a transfer: "receive", which prints a checksum of its input, or
// "send ADDRESS".
const programVariable = "FULLPIPE_LAB_TEST_PROGRAM"

const contentPort = ":7000"

func content() io.Reader {
	var seed [32]byte
	return io.LimitReader(rand.NewChaCha8(seed), 2<<20)
}

func transferEnd(what string) error {
	host, sending := strings.CutPrefix(what, "send ")
	if sending {
		c, err := net.Dial("tcp", host+contentPort)
		if err != nil {
			return err
		}
		if _, err := io.Copy(c, content()); err != nil {
			return err
		}
		return c.Close()
	}
	l, err := net.Listen("tcp", contentPort)
	if err != nil {
		return err
	}
	c, err := l.Accept()
	if err != nil {
		return err
	}
	sum := sha256.New()
	if _, err := io.Copy(sum, c); err != nil {
		return err
	}
	_, err = fmt.Printf("%x\n", sum.Sum(nil))
	return err
}

// countFaults prints how many segments a host's kernel refused, without duplicate SYNs.
const countFaults = `cat /proc/thread-self/net/snmp /proc/thread-self/net/netstat | awk '
	$1 == "Tcp:" || $1 == "TcpExt:" {
		if (!named[$1]++) { for (i = 2; i <= NF; i++) name[i] = $i; next }
		for (i = 2; i <= NF; i++) n[name[i]] = $i
	}
	END { print n["InErrs"] - n["TCPSYNChallenge"] + n["InCsumErrors"] }'`

// Split, partly lost, duplicated, reordered and option-stripped super-packets still carry the original data, and
// the kernel counts no errors.
func TestLab_ContentUnchanged(t *testing.T) {
	checkContent(t, "rate=unlimited,rtt=0ms",
		"rate=1gbit,rtt=1ms,loss=0.8%,duplicate=4%,reorder=4%/1ms,seed=3",
		"rate=unlimited,rtt=1ms,loss=2%/5,strip=timestamps+sack",
		"rate=300mbit,rtt=1ms,queue=12packets,mtu=1300")
}

// The same with gateways and an old host on the path.
func TestLab_ContentUnchangedWithGateways(t *testing.T) {
	checkContent(t, "rate=300mbit,rtt=1ms,stack=windows-xp,duplex=half",
		"rate=300mbit,rtt=1ms,vpn=gateway,crypto=200mbit,loss=0.8%,seed=3",
		"rate=300mbit,rtt=1ms,vpn=wireguard,loss=0.8%,seed=3")
}

func checkContent(t *testing.T, paths ...string) {
	t.Parallel()
	want := sha256.New()
	must.Get(io.Copy(want, content()))(t)
	for _, path := range paths {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			l := startLab(t, path)
			for _, version := range []int{4, 6} {
				if got := carryContent(t, l, version); got != fmt.Sprintf("%x", want.Sum(nil)) {
					t.Errorf("IPv%d: the received data has the checksum %s, want %x", version, got, want.Sum(nil))
				}
				for _, e := range []*End{l.Near, l.Far} {
					if faults, err := e.Output("sh", "-c", countFaults); err != nil || strings.TrimSpace(string(faults)) != "0" {
						t.Errorf("IPv%d: the kernel found %s faulty segments, %v", version, strings.TrimSpace(string(faults)), err)
					}
				}
			}
		})
	}
}

// carryContent sends the content from near to far and returns the checksum at the receiver.
func carryContent(t *testing.T, l *Lab, version int) string {
	t.Helper()
	address := l.Far.Addr.String()
	if version == 6 {
		address = "[" + l.Far.Addr6.String() + "]"
	}
	var out tail
	receiver, err := l.Far.Start(Command{Args: []string{"/proc/self/exe"}, Env: []string{programVariable + "=receive"},
		Stdout: &out, Stderr: os.Stderr})
	if err != nil {
		t.Fatal(err)
	}
	awaitListener(t, l.Far)
	status, err := l.Near.Run(Command{Args: []string{"/proc/self/exe"},
		Env:    []string{programVariable + "=send " + address},
		Stderr: os.Stderr})
	if err != nil || status != 0 {
		t.Fatalf("sender: %d, %v", status, err)
	}
	if status, err := receiver.Wait(); err != nil || status != 0 {
		t.Fatalf("receiver: %d, %v", status, err)
	}
	return strings.TrimSpace(string(out.bytes))
}

// A marking queue marks ECN connections and drops packets of others. A sender that reacts to the marks in time
// loses nothing.
func TestLab_ECNMarks(t *testing.T) {
	t.Parallel()
	for _, agreed := range []bool{true, false} {
		t.Run(fmt.Sprintf("ECN %v", agreed), func(t *testing.T) {
			t.Parallel()
			l := startLab(t, "rate=50mbit,rtt=5ms,queue=4MB,ecn=10packets")
			if agreed {
				if out, err := l.Near.Output("sh", "-c", "echo 1 >/proc/sys/net/ipv4/tcp_ecn"); err != nil {
					t.Fatalf("%v: %s", err, out)
				}
			}
			var before link.Counters
			for _, version := range []int{4, 6} {
				carryContent(t, l, version)
				up, _, err := l.Counters()
				if err != nil {
					t.Fatal(err)
				}
				marked, dropped := up.Marked-before.Marked, up.DroppedUnmarked-before.DroppedUnmarked
				if agreed != (marked > 0) || agreed != (dropped == 0) || up.DroppedQueue > 0 {
					t.Errorf("IPv%d: %d marked, %d dropped for want of ECN, %d for want of room", version, marked, dropped,
						up.DroppedQueue)
				}
				before = up
			}
		})
	}
}
