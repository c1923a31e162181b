//go:build linux

package fleet

import (
	"errors"
	"io"
	"net"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/fullpipe-net/fullpipe/e2e/harness"
)

// TestFleet_NAT checks that a host behind a NAT, which nobody can connect to, measures its paths to all others.
func TestFleet_NAT(t *testing.T) {
	if !alone(t) {
		return
	}
	f := newFleet(t, 2, "[task.throughput]\nbetween = [\"*\"]\nevery = \"1h\"\ntime = \"300ms\"\nmost = \"10MB\"\n", nil)
	f.addNAT("10.77.1.100/16", "8443", "5201")
	f.command("ip", "netns", "add", "hidden")
	f.command("ip", "link", "add", "eth0", "netns", "hidden", "type", "veth", "peer", "name", "inner", "netns", "nat")
	f.command("ip", "-n", "nat", "link", "set", "inner", "up")
	f.command("ip", "-n", "nat", "addr", "add", "192.168.7.1/24", "dev", "inner")
	f.command("ip", "-n", "nat", "rule", "add", "iif", "inner", "lookup", "100")
	f.command("ip", "-n", "hidden", "addr", "add", "192.168.7.2/24", "dev", "eth0")
	f.command("ip", "-n", "hidden", "link", "set", "eth0", "up")
	f.command("ip", "-n", "hidden", "link", "set", "lo", "up")
	f.command("ip", "-n", "hidden", "route", "add", "default", "via", "192.168.7.1")
	f.begin(f.addAgent("hidden"))
	f.awaitGrid(6)
	for _, line := range strings.Split(f.ask("runs", "--pair", "hidden"), "\n") {
		if strings.Contains(line, "unreachable") {
			t.Error(line)
		}
	}
}

// addNAT makes a namespace "nat" on the bridge. Its other device gets the name inner. It forwards connections to the
// ports from its own address: a NAT as connections see it, without filters in the kernel.
func (f *fleet) addNAT(outer string, ports ...string) {
	f.t.Helper()
	f.addHost("nat", outer)
	f.command("ip", "-n", "nat", "route", "add", "local", "default", "dev", "lo", "table", "100")
	for _, port := range ports {
		var l net.Listener
		transparent := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) (err error) {
			failed := c.Control(func(fd uintptr) { err = unix.SetsockoptInt(int(fd), unix.SOL_IP, unix.IP_TRANSPARENT, 1) })
			return errors.Join(err, failed)
		}}
		err := harness.InNamespace("nat", func() (err error) {
			l, err = transparent.Listen(f.t.Context(), "tcp4", ":"+port)
			return err
		})
		if err != nil {
			f.t.Fatal(err)
		}
		f.t.Cleanup(func() { l.Close() })
		go func() {
			for {
				front, err := l.Accept()
				if err != nil {
					return // closed
				}
				if strings.HasPrefix(outer, front.LocalAddr().(*net.TCPAddr).IP.String()+"/") {
					front.Close() // meant for the NAT itself, which would connect to itself
					continue
				}
				go forward(front, f.t.Log)
			}
		}()
	}
}

// forward connects to the address that a connection was meant for, and copies both ways.
func forward(front net.Conn, log func(...any)) {
	defer front.Close()
	var back net.Conn
	err := harness.InNamespace("nat", func() (err error) {
		back, err = net.Dial("tcp4", front.LocalAddr().String())
		return err
	})
	if err != nil {
		log(err)
		return
	}
	defer back.Close()
	go func() {
		_, _ = io.Copy(back, front)
		_ = back.(*net.TCPConn).CloseWrite()
	}()
	_, _ = io.Copy(front, back)
}
