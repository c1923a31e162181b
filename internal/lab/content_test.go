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
)

// programVariable makes the test binary one end of a transfer: "receive", which prints
// a checksum of what came, or "send ADDRESS".
const programVariable = "FULLPIPE_LAB_TEST_PROGRAM"

const contentPort = ":7000"

func content() io.Reader {
	var seed [32]byte
	return io.LimitReader(rand.NewChaCha8(seed), 8<<20)
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

// Super-packets that were cut apart, lost in part, doubled, overtaken and stripped of
// options still carry what was sent, and the kernel finds no fault with them.
func TestContentArrivesWhole(t *testing.T) {
	t.Parallel()
	want := sha256.New()
	if _, err := io.Copy(want, content()); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{
		"rate=unlimited,rtt=0ms",
		"rate=1gbit,rtt=1ms,loss=0.2%,duplicate=1%,reorder=1%/1ms,seed=3",
		"rate=unlimited,rtt=1ms,loss=0.5%/5,strip=timestamps+sack",
		"rate=300mbit,rtt=1ms,queue=12packets,mtu=1300",
		"rate=300mbit,rtt=1ms,stack=windows-xp,duplex=half",
		"rate=300mbit,rtt=1ms,vpn=gateway,crypto=200mbit,loss=0.2%,seed=3",
		"rate=300mbit,rtt=1ms,vpn=wireguard,loss=0.2%,seed=3",
	} {
		for _, version := range []int{4, 6} {
			t.Run(fmt.Sprintf("%s IPv%d", path, version), func(t *testing.T) {
				t.Parallel()
				l := startLab(t, path)
				if got := carryContent(t, l, version); got != fmt.Sprintf("%x", want.Sum(nil)) {
					t.Errorf("what arrived has the checksum %s, want %x", got, want.Sum(nil))
				}
				for _, e := range []*End{l.Near, l.Far} {
					if faults, err := e.Output("sh", "-c",
						`grep -h -A1 ^Tcp: /proc/thread-self/net/snmp | awk 'NR==1 {for (i=1; i<=NF; i++) if ($i=="InErrs" || $i=="InCsumErrors") c[i]} NR==2 {for (i in c) n+=$i; print n}'`); err != nil || strings.TrimSpace(string(faults)) != "0" {
						t.Errorf("the kernel found %s faulty segments, %v", strings.TrimSpace(string(faults)), err)
					}
				}
			})
		}
	}
}

// carryContent sends the content from near to far and answers the checksum of what arrived.
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

// A marking queue marks what agreed to ECN and drops what did not, and a sender that is told
// in time loses nothing.
func TestMarkingQueue(t *testing.T) {
	t.Parallel()
	for _, version := range []int{4, 6} {
		for _, agreed := range []bool{true, false} {
			t.Run(fmt.Sprintf("IPv%d ECN %v", version, agreed), func(t *testing.T) {
				t.Parallel()
				l := startLab(t, "rate=50mbit,rtt=5ms,queue=4MB,ecn=10packets")
				if agreed {
					if out, err := l.Near.Output("sh", "-c", "echo 1 >/proc/sys/net/ipv4/tcp_ecn"); err != nil {
						t.Fatalf("%v: %s", err, out)
					}
				}
				carryContent(t, l, version)
				up, _, err := l.Counters()
				if err != nil {
					t.Fatal(err)
				}
				if agreed != (up.Marked > 0) || agreed != (up.DroppedUnmarked == 0) || up.DroppedQueue > 0 {
					t.Errorf("%d marked, %d dropped for want of ECN, %d for want of room", up.Marked, up.DroppedUnmarked,
						up.DroppedQueue)
				}
			})
		}
	}
}
