package host

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// routeStore is the store of single attributes of routes of the main table: "10.2.0.0/16 initcwnd", "default window"
// (IPv4; "::/0 window" for IPv6). It changes a route by returning the kernel's own message with other metrics.
type routeStore struct{}

// metrics are the route attributes that can be set, by RTAX_ number
// (include/uapi/linux/rtnetlink.h).
var metrics = map[string]uint16{"window": unix.RTAX_WINDOW, "cwnd": unix.RTAX_CWND, "advmss": unix.RTAX_ADVMSS,
	"initcwnd": unix.RTAX_INITCWND, "rto_min": unix.RTAX_RTO_MIN, "initrwnd": unix.RTAX_INITRWND,
	"quickack": unix.RTAX_QUICKACK, "congctl": unix.RTAX_CC_ALGO, "mtu": unix.RTAX_MTU}

func (routeStore) normal(value string) string { return strings.TrimSpace(value) }

func (routeStore) read(name string) (*string, error) {
	message, attribute, err := findRoute(name)
	if err != nil {
		return nil, err
	}
	value, ok := message.metric(attribute)
	if !ok {
		return nil, nil
	}
	text := strconv.Itoa(int(value.number()))
	if attribute == unix.RTAX_CC_ALGO {
		text = strings.TrimRight(string(value.data), "\x00")
	}
	return &text, nil
}

func (routeStore) write(name string, value *string) error {
	message, attribute, err := findRoute(name)
	if err != nil {
		return err
	}
	var data []byte
	if value != nil {
		if attribute == unix.RTAX_CC_ALGO {
			data = append([]byte(*value), 0)
		} else {
			n, err := strconv.ParseUint(*value, 10, 32)
			if err != nil || n == 0 {
				return fmt.Errorf("%s: %q is not a number above 0", name, *value)
			}
			data = binary.NativeEndian.AppendUint32(nil, uint32(n))
		}
	}
	message.setMetric(attribute, data)
	if err := message.replace(); err != nil {
		return fmt.Errorf("route %s: %w", name, err)
	}
	return nil
}

// attribute is a routing attribute: a type and its payload.
type attribute struct {
	kind uint16
	data []byte
}

func (a attribute) number() uint32 {
	if len(a.data) < 4 {
		return 0
	}
	return binary.NativeEndian.Uint32(a.data)
}

// route is a route as the kernel describes it: struct rtmsg and its attributes.
type route struct {
	header     [unix.SizeofRtMsg]byte
	attributes []attribute
}

func (r *route) find(kind uint16) []byte {
	for _, a := range r.attributes {
		if a.kind == kind {
			return a.data
		}
	}
	return nil
}

func (r *route) metric(kind uint16) (attribute, bool) {
	for _, a := range parseAttributes(r.find(unix.RTA_METRICS)) {
		if a.kind == kind {
			return a, true
		}
	}
	return attribute{}, false
}

// setMetric replaces a metric; nil data removes it and its lock. A congestion window has an effect only if it is
// locked.
func (r *route) setMetric(kind uint16, data []byte) {
	var kept []attribute
	locks := uint32(0)
	for _, a := range parseAttributes(r.find(unix.RTA_METRICS)) {
		switch a.kind {
		case kind:
		case unix.RTAX_LOCK:
			locks = a.number() &^ (1 << kind)
		default:
			kept = append(kept, a)
		}
	}
	if data != nil {
		kept = append(kept, attribute{kind, data})
		if kind == unix.RTAX_CWND {
			locks |= 1 << kind
		}
	}
	if locks != 0 {
		kept = append(kept, attribute{unix.RTAX_LOCK, binary.NativeEndian.AppendUint32(nil, locks)})
	}
	var rest []attribute
	for _, a := range r.attributes {
		if a.kind != unix.RTA_METRICS {
			rest = append(rest, a)
		}
	}
	if len(kept) > 0 {
		rest = append(rest, attribute{unix.RTA_METRICS, encodeAttributes(kept)})
	}
	r.attributes = rest
}

func (r *route) priority() uint32 { return attribute{data: r.find(unix.RTA_PRIORITY)}.number() }

func parseAttributes(b []byte) []attribute {
	var all []attribute
	for len(b) >= unix.SizeofRtAttr {
		length := int(binary.NativeEndian.Uint16(b))
		if length < unix.SizeofRtAttr || length > len(b) {
			break
		}
		kind := binary.NativeEndian.Uint16(b[2:]) &^ (unix.NLA_F_NESTED | unix.NLA_F_NET_BYTEORDER)
		all = append(all, attribute{kind, b[unix.SizeofRtAttr:length]})
		b = b[min((length+3)&^3, len(b)):]
	}
	return all
}

func encodeAttributes(all []attribute) []byte {
	var b []byte
	for _, a := range all {
		b = binary.NativeEndian.AppendUint16(b, uint16(unix.SizeofRtAttr+len(a.data)))
		b = binary.NativeEndian.AppendUint16(b, a.kind)
		b = append(b, a.data...)
		b = append(b, make([]byte, (4-len(a.data)%4)%4)...)
	}
	return b
}

// findRoute returns the route and the attribute of a name. Of several routes to one prefix it returns the one in use,
// with the least priority.
func findRoute(name string) (*route, uint16, error) {
	prefixText, attributeText, _ := strings.Cut(name, " ")
	kind, ok := metrics[attributeText]
	if !ok {
		return nil, 0, fmt.Errorf("%q is not a route's prefix and attribute, such as \"10.2.0.0/16 initcwnd\"", name)
	}
	if prefixText == "default" {
		prefixText = "0.0.0.0/0"
	}
	prefix, err := netip.ParsePrefix(prefixText)
	if err != nil {
		return nil, 0, err
	}
	prefix = prefix.Masked()
	family := unix.AF_INET
	if prefix.Addr().Is6() {
		family = unix.AF_INET6
	}
	all, err := listRoutes(family)
	if err != nil {
		return nil, 0, err
	}
	var best *route
	for _, r := range all {
		if r.prefix() == prefix && (best == nil || r.priority() < best.priority()) {
			best = r
		}
	}
	if best == nil {
		return nil, 0, fmt.Errorf("the main table has no route to exactly %s", prefix)
	}
	return best, kind, nil
}

func (r *route) prefix() netip.Prefix {
	bits := int(r.header[1])
	addr, ok := netip.AddrFromSlice(r.find(unix.RTA_DST))
	if !ok {
		addr = netip.IPv4Unspecified()
		if r.header[0] == unix.AF_INET6 {
			addr = netip.IPv6Unspecified()
		}
	}
	return netip.PrefixFrom(addr, bits)
}

// listRoutes reads the unicast routes of the main table.
func listRoutes(family int) ([]*route, error) {
	var all []*route
	request := make([]byte, unix.SizeofRtMsg)
	request[0] = byte(family)
	err := dump(unix.RTM_GETROUTE, request, func(payload []byte) {
		if len(payload) < unix.SizeofRtMsg {
			return
		}
		r := &route{header: [unix.SizeofRtMsg]byte(payload)}
		const tableAt, typeAt, flagsAt = 4, 7, 8 // struct rtmsg
		cloned := binary.NativeEndian.Uint32(r.header[flagsAt:])&unix.RTM_F_CLONED != 0
		if r.header[tableAt] == unix.RT_TABLE_MAIN && r.header[typeAt] == unix.RTN_UNICAST && !cloned {
			r.attributes = parseAttributes(payload[unix.SizeofRtMsg:])
			all = append(all, r)
		}
	})
	if err != nil {
		return nil, fmt.Errorf("read the routes: %w", err)
	}
	return all, nil
}

// replace replaces the kernel's route with this one.
func (r *route) replace() error {
	// A dump contains attributes that a change must not have.
	const nexthopObject = 30 // RTA_NH_ID
	byObject := r.find(nexthopObject) != nil
	var sent []attribute
	for _, a := range r.attributes {
		switch a.kind {
		case unix.RTA_CACHEINFO:
		case unix.RTA_GATEWAY, unix.RTA_OIF, unix.RTA_MULTIPATH, unix.RTA_VIA, unix.RTA_ENCAP, unix.RTA_ENCAP_TYPE:
			if !byObject {
				sent = append(sent, a)
			}
		default:
			sent = append(sent, a)
		}
	}
	header := r.header
	binary.NativeEndian.PutUint32(header[8:],
		binary.NativeEndian.Uint32(header[8:])&(unix.RTNH_F_ONLINK|unix.RTNH_F_PERVASIVE))
	return sendAcknowledged(unix.RTM_NEWROUTE, unix.NLM_F_REPLACE, append(header[:], encodeAttributes(sent)...))
}

func routeTo(address netip.Addr) (string, error) {
	family := unix.AF_INET
	if address.Is6() {
		family = unix.AF_INET6
	}
	all, err := listRoutes(family)
	if err != nil {
		return "", err
	}
	var best *netip.Prefix
	for _, r := range all {
		p := r.prefix()
		if p.Contains(address) && (best == nil || p.Bits() > best.Bits()) {
			best = &p
		}
	}
	switch {
	case best == nil:
		return "", fmt.Errorf("the main table has no route to %s", address)
	case best.Bits() == 0 && family == unix.AF_INET:
		return "default", nil
	}
	return best.String(), nil
}
