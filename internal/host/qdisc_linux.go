package host

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// qdiscStore is the store of shapers for a device's packets to one prefix: "eth0 to 192.0.2.0/24", in bit/s with the
// device's framing. A shaper is a token bucket (htb) in place of the device's default queue; other packets pass
// unshaped. It replaces no configured queue and no fair default queue (fq_codel, fq, mq): other traffic would lose the
// fairness.
type qdiscStore struct{}

// ourMajor is the handle of our queue; tc assigns handles from 0x8000.
const ourMajor = 0x0f11

var (
	ourQdisc = netlink.MakeHandle(ourMajor, 0)
	ourClass = netlink.MakeHandle(ourMajor, 1)
)

func (qdiscStore) normal(value string) string { return strings.TrimSpace(value) }

// shaper is a name of the store, parsed.
type shaper struct {
	device netlink.Link
	to     netip.Prefix
}

func parseShaper(name string) (shaper, error) {
	device, prefix, _ := strings.Cut(name, " to ")
	to, err := netip.ParsePrefix(prefix)
	if err != nil || to != to.Masked() {
		return shaper{}, fmt.Errorf("%q is not DEVICE to PREFIX", name)
	}
	link, err := netlink.LinkByName(device)
	if err != nil {
		return shaper{}, fmt.Errorf("device %s: %w", device, err)
	}
	return shaper{link, to}, nil
}

func (qdiscStore) read(name string) (*string, error) {
	s, err := parseShaper(name)
	if err != nil {
		return nil, err
	}
	ours, err := s.root()
	if err != nil || !ours {
		return nil, err
	}
	if to, err := s.filtered(); err != nil || to != s.to {
		return nil, errors.Join(err, fmt.Errorf("%s already has a shaper to %s", s.device.Attrs().Name, to))
	}
	classes, err := netlink.ClassList(s.device, ourQdisc)
	if err != nil {
		return nil, fmt.Errorf("read the classes of %s: %w", s.device.Attrs().Name, err)
	}
	for _, c := range classes {
		if htb, ok := c.(*netlink.HtbClass); ok && htb.Handle == ourClass {
			value := strconv.FormatUint(8*htb.Rate, 10)
			return &value, nil
		}
	}
	return nil, fmt.Errorf("%s has a queue of ours without its class", s.device.Attrs().Name)
}

// root reports whether the device's root queue is ours. It returns an error for a queue that must stay.
func (s shaper) root() (ours bool, err error) {
	name := s.device.Attrs().Name
	all, err := netlink.QdiscList(s.device)
	if err != nil {
		return false, fmt.Errorf("read the queues of %s: %w", name, err)
	}
	for _, q := range all {
		a := q.Attrs()
		switch {
		case a.Parent != netlink.HANDLE_ROOT:
		case a.Handle == ourQdisc && q.Type() == "htb":
			return true, nil
		case a.Handle != 0:
			return false, fmt.Errorf("the queue of %s is configured (%s): it stays", name, q.Type())
		case q.Type() != "noqueue" && q.Type() != "pfifo_fast" && q.Type() != "pfifo":
			return false, fmt.Errorf("the queue of %s is %s: a shaper would end its fairness to other traffic; pace in the "+
				"program instead (SO_MAX_PACING_RATE)", name, q.Type())
		}
	}
	return false, nil
}

// write sets the rate; nil restores the device's default queue.
func (qdiscStore) write(name string, value *string) error {
	s, err := parseShaper(name)
	if err != nil {
		return err
	}
	ours, err := s.root()
	switch {
	case err != nil:
		return err
	case value != nil:
		bps, err := strconv.ParseUint(*value, 10, 63)
		if err != nil || bps < 8 || bps%8 != 0 {
			return fmt.Errorf("%s: %q is not a rate in bit/s, a multiple of 8", name, *value)
		}
		return s.shape(ours, bps)
	case !ours:
		return nil
	}
	return s.remove()
}

func (s shaper) remove() error {
	q := netlink.NewHtb(netlink.QdiscAttrs{LinkIndex: s.device.Attrs().Index, Handle: ourQdisc,
		Parent: netlink.HANDLE_ROOT})
	if err := netlink.QdiscDel(q); err != nil {
		return fmt.Errorf("remove the shaper of %s: %w", s.device.Attrs().Name, err)
	}
	return nil
}

// shape adds queue, class and filter, or changes the class's rate; all or nothing.
func (s shaper) shape(ours bool, bps uint64) (err error) {
	index := s.device.Attrs().Index
	action := "change the shaper of " + s.device.Attrs().Name
	class := netlink.NewHtbClass(netlink.ClassAttrs{LinkIndex: index, Parent: ourQdisc, Handle: ourClass},
		netlink.HtbClassAttrs{Rate: bps, Ceil: bps})
	if ours {
		if err := netlink.ClassChange(class); err != nil {
			return fmt.Errorf("%s: %w", action, err)
		}
		return nil
	}
	if err := netlink.QdiscAdd(netlink.NewHtb(netlink.QdiscAttrs{LinkIndex: index, Handle: ourQdisc,
		Parent: netlink.HANDLE_ROOT})); err != nil {
		return fmt.Errorf("%s: %w", action, err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("%s: %w", action, err), s.remove())
		}
	}()
	if err := netlink.ClassAdd(class); err != nil {
		return err
	}
	return netlink.FilterAdd(s.filter())
}

// filter returns the filter that sends packets to the prefix to our class, by the destination in the IP header
// (offset 16 in RFC 791, 24 in RFC 8200).
func (s shaper) filter() *netlink.U32 {
	protocol := uint16(unix.ETH_P_IP)
	at := int32(16)
	bytes := s.to.Addr().AsSlice()
	if s.to.Addr().Is6() {
		protocol = unix.ETH_P_IPV6
		at = 24
	}
	sel := &netlink.TcU32Sel{Flags: nl.TC_U32_TERMINAL}
	for i := 0; i < len(bytes); i += 4 {
		bits := min(max(s.to.Bits()-8*i, 0), 32)
		mask := uint32(0xffffffff << (32 - bits))
		if bits == 0 && i > 0 {
			continue
		}
		sel.Keys = append(sel.Keys, netlink.TcU32Key{Mask: mask, Val: binary.BigEndian.Uint32(bytes[i:]), Off: at + int32(i)})
	}
	return &netlink.U32{FilterAttrs: netlink.FilterAttrs{LinkIndex: s.device.Attrs().Index, Parent: ourQdisc, Priority: 1,
		Protocol: protocol}, ClassId: ourClass, Sel: sel}
}

// filtered returns the prefix of our filter on the device.
func (s shaper) filtered() (to netip.Prefix, err error) {
	filters, err := netlink.FilterList(s.device, ourQdisc)
	if err != nil {
		return to, fmt.Errorf("read the filters of %s: %w", s.device.Attrs().Name, err)
	}
	for _, f := range filters {
		u32, ok := f.(*netlink.U32)
		if !ok || u32.ClassId != ourClass || u32.Sel == nil {
			continue
		}
		address := make([]byte, 4)
		size := 0
		start := int32(16)
		if u32.Protocol == unix.ETH_P_IPV6 {
			address = make([]byte, 16)
			start = 24
		}
		for _, k := range u32.Sel.Keys {
			at := int(k.Off - start)
			if at < 0 || at+4 > len(address) {
				return to, fmt.Errorf("the filter of %s is no longer ours", s.device.Attrs().Name)
			}
			binary.BigEndian.PutUint32(address[at:], k.Val)
			for m := k.Mask; m != 0; m <<= 1 {
				size++
			}
		}
		from, _ := netip.AddrFromSlice(address)
		return netip.PrefixFrom(from, size), nil
	}
	return to, fmt.Errorf("%s has a queue of ours without its filter", s.device.Attrs().Name)
}

func shaperTo(address netip.Addr) (string, error) {
	routes, err := netlink.RouteGet(address.AsSlice())
	if err != nil || len(routes) == 0 {
		return "", errors.Join(fmt.Errorf("no route to %s", address), err)
	}
	link, err := netlink.LinkByIndex(routes[0].LinkIndex)
	if err != nil {
		return "", fmt.Errorf("the device towards %s: %w", address, err)
	}
	return fmt.Sprintf("%s to %s", link.Attrs().Name, netip.PrefixFrom(address, address.BitLen())), nil
}
