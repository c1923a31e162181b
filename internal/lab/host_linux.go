package lab

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/fullpipe-net/fullpipe/internal/link"
)

const deviceName = "lab0"

type address struct{ v4, v6 netip.Addr }

// newHost makes a network namespace on the calling thread, which stays in it, with a
// TUN device of that MTU that leads to the peer; segment is the payload of the largest
// segments that will reach it. It answers the device and a descriptor of the namespace.
func newHost(self, peer address, mtu, segment int, stack link.Stack) (*tun, int, error) {
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		return nil, 0, fmt.Errorf("network namespace: %w", err)
	}
	namespace, err := unix.Open("/proc/thread-self/ns/net", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, 0, fmt.Errorf("network namespace: %w", err)
	}
	if err := quietIPv6(); err != nil {
		return nil, 0, err
	}
	t, err := openTUN(deviceName)
	if err != nil {
		return nil, 0, err
	}
	settings := slices.Clone(stack.Sysctls)
	if stack.Window > 0 {
		buffer := receiveBuffer(stack.Window, segment)
		settings = append(settings, link.Sysctl{Name: "ipv4.tcp_rmem", Value: fmt.Sprintf("4096 %d %d", buffer, max(buffer, 4<<20))})
	}
	refused, err := setSysctls(settings)
	if err != nil {
		return nil, 0, fmt.Errorf("stack %s: %w", stack.Name, err)
	}
	if err := configure(self, peer, mtu, refused["ipv4.tcp_congestion_control"]); err != nil {
		return nil, 0, err
	}
	return t, namespace, nil
}

// quietIPv6 keeps hosts from sending anything of their own accord: each packet on the
// link is a program's. A host without IPv6 is fine.
func quietIPv6() error {
	for _, name := range []string{"ipv6.conf.default.addr_gen_mode=1", "ipv6.conf.default.router_solicitations=0",
		"ipv6.conf.default.accept_ra=0", "ipv6.conf.default.dad_transmits=0"} {
		key, value, _ := strings.Cut(name, "=")
		if err := writeSysctl(key, value); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return nil
}

func writeSysctl(name, value string) error {
	return os.WriteFile("/proc/sys/net/"+strings.ReplaceAll(name, ".", "/"), []byte(value), 0)
}

// setSysctls makes a stack. A setting that this kernel does not have is left out; one
// that may not be set here is answered.
func setSysctls(settings []link.Sysctl) (refused map[string]string, err error) {
	refused = map[string]string{}
	settings = append([]link.Sysctl{{Name: "ipv4.ping_group_range", Value: "0 0"}}, settings...)
	for _, s := range settings {
		switch err := writeSysctl(s.Name, s.Value); {
		case errors.Is(err, os.ErrNotExist):
		case errors.Is(err, os.ErrPermission):
			refused[s.Name] = s.Value
		case err != nil:
			return nil, fmt.Errorf("%s=%s: %w", s.Name, s.Value, err)
		}
	}
	return refused, nil
}

// receiveBuffer is the tcp_rmem that gives a window. From Linux 6.6 on the window is the
// share of the free buffer that payload had of the first full segment's memory
// (tcp_measure_rcv_mss): 1460 bytes of 2304, say, in 256ths, when packets come one by one. It
// stops growing when one more segment than it would fit (tcp_grow_window). Before, it
// is half of the buffer, by tcp_adv_win_scale 1.
func receiveBuffer(window, segment int) int {
	var u unix.Utsname
	var major, minor int
	if unix.Uname(&u) == nil {
		fmt.Sscanf(unix.ByteSliceToString(u.Release[:]), "%d.%d", &major, &minor)
	}
	if major < 6 || major == 6 && minor < 6 {
		return 2 * window
	}
	const memory = 2304
	share := max(segment*256/memory, 1)
	return (window*256+share-1)/share + memory
}

// configure brings the devices up. Congestion, when not empty, becomes the default by
// way of the routes: a namespace may not choose an algorithm for all its sockets that
// the machine's administrator has not allowed to everybody.
func configure(self, peer address, mtu int, congestion string) error {
	lo, err := netlink.LinkByName("lo")
	if err != nil {
		return fmt.Errorf("loopback: %w", err)
	}
	if err := netlink.LinkSetUp(lo); err != nil {
		return fmt.Errorf("loopback: %w", err)
	}
	device, err := netlink.LinkByName(deviceName)
	if err != nil {
		return fmt.Errorf("device: %w", err)
	}
	index := device.Attrs().Index
	if err := errors.Join(netlink.LinkSetMTU(device, mtu), netlink.LinkSetTxQLen(device, 10000),
		netlink.LinkSetMulticastOff(device), netlink.LinkSetUp(device)); err != nil {
		return fmt.Errorf("device: %w", err)
	}
	families := []struct{ self, peer netip.Addr }{{self.v4, peer.v4}, {self.v6, peer.v6}}
	for _, f := range families {
		bits := f.self.BitLen()
		local := &net.IPNet{IP: f.self.AsSlice(), Mask: net.CIDRMask(bits, bits)}
		err := netlink.AddrAdd(device, &netlink.Addr{IPNet: local, Flags: unix.IFA_F_NODAD | unix.IFA_F_NOPREFIXROUTE})
		if f.self.Is6() && errors.Is(err, unix.EOPNOTSUPP) {
			continue // this machine has no IPv6
		}
		if err != nil {
			return fmt.Errorf("address %v: %w", f.self, err)
		}
		everything := &net.IPNet{IP: make(net.IP, bits/8), Mask: net.CIDRMask(0, bits)}
		for _, to := range []*net.IPNet{{IP: f.peer.AsSlice(), Mask: net.CIDRMask(bits, bits)}, everything} {
			route := &netlink.Route{LinkIndex: index, Dst: to, Src: f.self.AsSlice(), Congctl: congestion, Scope: netlink.SCOPE_LINK}
			if f.self.Is6() {
				route.Scope = netlink.SCOPE_UNIVERSE
			}
			if err := netlink.RouteAdd(route); err != nil {
				return fmt.Errorf("route to %v: %w", to, err)
			}
		}
	}
	return nil
}
