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

// host is one end: its namespace, kept by a descriptor, and its stack.
type host struct {
	name      string
	namespace int
	stack     link.Stack
	// congestion control set by the route, because the namespace may not; or ""
	congestion string
}

// newHost makes a network namespace on the calling thread, which stays in it, with a TUN device as the default
// route. segment is the payload of the largest segments that reach the host.
func newHost(name string, stack link.Stack, mtu, segment int, ways ...way) (*host, *tun, error) {
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		return nil, nil, fmt.Errorf("network namespace: %w", err)
	}
	namespace, err := unix.Open("/proc/thread-self/ns/net", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("network namespace: %w", err)
	}
	if err := quietIPv6(); err != nil {
		return nil, nil, err
	}
	t, err := openTUN(deviceName)
	if err != nil {
		return nil, nil, err
	}
	settings := slices.Clone(stack.Sysctls)
	if stack.Window > 0 {
		buffer := receiveBuffer(stack.Window, segment)
		settings = append(settings, link.Sysctl{Name: "ipv4.tcp_rmem", Value: fmt.Sprintf("4096 %d %d", buffer,
			max(buffer, 4<<20, stack.LargestWindow))})
	}
	refused, err := setSysctls(settings)
	if err != nil {
		return nil, nil, fmt.Errorf("stack %s: %w", stack.Name, err)
	}
	h := &host{name, namespace, stack, refused["ipv4.tcp_congestion_control"]}
	lo, err := netlink.LinkByName("lo")
	if err != nil {
		return nil, nil, fmt.Errorf("loopback: %w", err)
	}
	if err := netlink.LinkSetUp(lo); err != nil {
		return nil, nil, fmt.Errorf("loopback: %w", err)
	}
	ways = append(ways, way{self: ways[0].self})
	return h, t, h.configure(deviceName, mtu, ways...)
}

// quietIPv6 stops hosts from sending packets of their own: each packet on the link is a program's. A host without
// IPv6 is fine.
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

// setSysctls sets a stack's sysctls. It skips those that this kernel lacks and returns those that it may not set.
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

// receiveBuffer returns the tcp_rmem for a window. Since Linux 6.6 the window is the payload's share of the first
// full segment's memory (tcp_measure_rcv_mss), in 256ths: 1460 of 2304 bytes for single packets. It stops growing
// when it has room for one more segment (tcp_grow_window). Before 6.6 it is half of the buffer (tcp_adv_win_scale
// 1).
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

// way is a host address and the peer that it reaches; a zero peer is the default route.
type way struct{ self, peer address }

// configure brings a device up. Routes set the host's congestion control: a namespace may not choose one for all
// sockets unless the administrator allowed it for everybody.
func (h *host) configure(name string, mtu int, ways ...way) error {
	device, err := netlink.LinkByName(name)
	if err != nil {
		return fmt.Errorf("device: %w", err)
	}
	if err := errors.Join(netlink.LinkSetMTU(device, mtu), netlink.LinkSetTxQLen(device, 10000),
		netlink.LinkSetMulticastOff(device), netlink.LinkSetUp(device)); err != nil {
		return fmt.Errorf("device: %w", err)
	}
	for _, w := range ways {
		for _, f := range []struct{ self, peer netip.Addr }{{w.self.v4, w.peer.v4}, {w.self.v6, w.peer.v6}} {
			if err := h.addRoute(device, f.self, f.peer); err != nil {
				return err
			}
		}
	}
	return nil
}

// addRoute gives the device an address and a route from it to the peer. A machine without IPv6 is fine.
func (h *host) addRoute(device netlink.Link, self, peer netip.Addr) error {
	bits := self.BitLen()
	local := &net.IPNet{IP: self.AsSlice(), Mask: net.CIDRMask(bits, bits)}
	err := netlink.AddrReplace(device, &netlink.Addr{IPNet: local, Flags: unix.IFA_F_NODAD | unix.IFA_F_NOPREFIXROUTE})
	if self.Is6() && errors.Is(err, unix.EOPNOTSUPP) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("address %v: %w", self, err)
	}
	to := &net.IPNet{IP: make(net.IP, bits/8), Mask: net.CIDRMask(0, bits)}
	if peer.IsValid() {
		to = &net.IPNet{IP: peer.AsSlice(), Mask: net.CIDRMask(bits, bits)}
	}
	// Linux forgets the route's window when a buffer first grows, but keeps the window scale that the window gave.
	route := &netlink.Route{LinkIndex: device.Attrs().Index, Dst: to, Src: self.AsSlice(), Congctl: h.congestion,
		Scope: netlink.SCOPE_LINK, InitCwnd: h.stack.InitialWindow, Window: h.stack.LargestWindow}
	if h.stack.DelayedAck > 0 { // the link delays ACKs: the kernel must not delay them too
		route.QuickACK = 1
	}
	if self.Is6() {
		route.Scope = netlink.SCOPE_UNIVERSE
	}
	if err := netlink.RouteAdd(route); err != nil {
		return fmt.Errorf("route to %v: %w", to, err)
	}
	return nil
}
