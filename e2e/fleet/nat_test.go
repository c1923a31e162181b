//go:build linux

package fleet

import (
	"errors"
	"io"
	"net"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
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
		within("nat", func() (err error) {
			l, err = transparent.Listen(f.t.Context(), "tcp4", ":"+port)
			return err
		}, f.t.Fatal)
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
	within("nat", func() (err error) { back, err = net.Dial("tcp4", front.LocalAddr().String()); return err }, log)
	if back == nil {
		return
	}
	defer back.Close()
	go func() {
		_, _ = io.Copy(back, front)
		_ = back.(*net.TCPConn).CloseWrite()
	}()
	_, _ = io.Copy(front, back)
}

// within runs a function in a namespace. The thread returns to its own one: its end would end the programs that it
// started.
func within(namespace string, do func() error, failed func(...any)) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	own, err := unix.Open("/proc/thread-self/ns/net", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		failed(err)
		return
	}
	defer unix.Close(own)
	other, err := unix.Open("/run/netns/"+namespace, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		failed(err)
		return
	}
	defer unix.Close(other)
	if err := unix.Setns(other, unix.CLONE_NEWNET); err != nil {
		failed(err)
		return
	}
	err = do()
	if back := unix.Setns(own, unix.CLONE_NEWNET); back != nil {
		panic(back) // the thread would serve other goroutines in the wrong namespace
	}
	if err != nil {
		failed(err)
	}
}
