package drops

import (
	"encoding/binary"
	"fmt"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"github.com/fullpipe-net/fullpipe/internal/lost"
)

// maxRules limits the rules that are read: a host of a cluster may have tens of thousands.
const maxRules = 10_000

// netfilter hooks (include/uapi/linux/netfilter.h)
const (
	hookPrerouting = iota
	hookInput
	hookForward
	hookOutput
	hookPostrouting
)

// readRules reads the counters of nftables' rules that drop packets, as far as rules have them; the
// rules of iptables-nft always have.
func readRules(all snapshot) {
	hooks := map[string]uint32{} // of base chains
	err := nftables(unix.NFT_MSG_GETCHAIN, func(family uint8, a attributes) bool {
		if hook := a.nested(unix.NFTA_CHAIN_HOOK); hook != nil {
			hooks[chainOf(family, a, unix.NFTA_CHAIN_TABLE, unix.NFTA_CHAIN_NAME)] = hook.u32(unix.NFTA_HOOK_HOOKNUM)
		}
		return true
	})
	if err != nil { // without CAP_NET_ADMIN, or without nftables
		return
	}
	rules := 0
	// The rules until an error are good.
	_ = nftables(unix.NFT_MSG_GETRULE, func(family uint8, a attributes) bool {
		rules++
		packets, bytes, drops := dropOf(a[unix.NFTA_RULE_EXPRESSIONS])
		if !drops {
			return rules < maxRules
		}
		chain := chainOf(family, a, unix.NFTA_RULE_TABLE, unix.NFTA_RULE_CHAIN)
		c := lost.Netfilter
		if hook, is := hooks[chain]; is && hook != hookForward {
			c.Sends = hook == hookOutput || hook == hookPostrouting
			c.Receives = !c.Sends
		}
		rule := fmt.Sprintf("%s handle %d", chain, a.u64(unix.NFTA_RULE_HANDLE))
		all[counterKey{name: "nftables counter", rule: rule}] = counter{Counter: c, packets: packets, bytes: bytes,
			slow: true}
		return rules < maxRules
	})
}

func chainOf(family uint8, a attributes, table, name uint16) string {
	return fmt.Sprintf("%s %s %s", familyNames[family], a.text(table), a.text(name))
}

// familyNames are nftables' words for NFPROTO_.
var familyNames = map[uint8]string{1: "inet", 2: "ip", 3: "arp", 5: "netdev", 7: "bridge", 10: "ip6"}

// dropOf returns the counter of a rule that drops packets.
func dropOf(expressions []byte) (packets, bytes uint64, drops bool) {
	list, err := nl.ParseRouteAttr(expressions)
	if err != nil {
		return 0, 0, false
	}
	counted := false
	for i := range list {
		one := attributesOf(list[i].Value)
		data := one.nested(unix.NFTA_EXPR_DATA)
		switch one.text(unix.NFTA_EXPR_NAME) {
		case "counter":
			packets = data.u64(unix.NFTA_COUNTER_PACKETS)
			bytes = data.u64(unix.NFTA_COUNTER_BYTES)
			counted = true
		case "reject":
			drops = true
		case "immediate":
			verdict := data.nested(unix.NFTA_IMMEDIATE_DATA).nested(unix.NFTA_DATA_VERDICT)
			if code, is := verdict[unix.NFTA_VERDICT_CODE]; is && len(code) == 4 {
				drops = drops || binary.BigEndian.Uint32(code) == 0 // NF_DROP
			}
		}
	}
	return packets, bytes, drops && counted
}

// nftables requests a list and calls each with every entry, until it returns false.
func nftables(kind int, each func(family uint8, a attributes) bool) error {
	const header = 4 // struct nfgenmsg
	r := nl.NewNetlinkRequest(unix.NFNL_SUBSYS_NFTABLES<<8|kind, unix.NLM_F_DUMP)
	r.AddRawData(make([]byte, header))
	return r.ExecuteIter(unix.NETLINK_NETFILTER, 0, func(payload []byte) bool {
		if len(payload) < header {
			return true
		}
		return each(payload[0], attributesOf(payload[header:]))
	})
}

// attributes are netlink attributes by type.
type attributes map[uint16][]byte

func attributesOf(b []byte) attributes {
	list, err := nl.ParseRouteAttr(b)
	if err != nil {
		return nil
	}
	a := attributes{}
	for _, one := range list {
		a[one.Attr.Type&^(unix.NLA_F_NESTED|unix.NLA_F_NET_BYTEORDER)] = one.Value
	}
	return a
}

func (a attributes) nested(kind uint16) attributes {
	if b, is := a[kind]; is {
		return attributesOf(b)
	}
	return nil
}

func (a attributes) text(kind uint16) string { return unix.ByteSliceToString(a[kind]) }

func (a attributes) u32(kind uint16) uint32 {
	if b := a[kind]; len(b) == 4 {
		return binary.BigEndian.Uint32(b)
	}
	return 0
}

func (a attributes) u64(kind uint16) uint64 {
	if b := a[kind]; len(b) == 8 {
		return binary.BigEndian.Uint64(b)
	}
	return 0
}
