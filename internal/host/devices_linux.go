package host

import (
	"bytes"
	"encoding/binary"
	"net"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/fullpipe-net/fullpipe/internal/audit"
)

// readInterfaces reads the interfaces that are up, except loopback.
func readInterfaces(s *audit.Snapshot) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return dump(unix.RTM_GETLINK, make([]byte, unix.SizeofIfInfomsg), func(payload []byte) {
		if len(payload) < unix.SizeofIfInfomsg {
			return
		}
		flags := binary.NativeEndian.Uint32(payload[8:]) // struct ifinfomsg
		if flags&unix.IFF_UP == 0 || flags&unix.IFF_LOOPBACK != 0 {
			return
		}
		f := audit.Interface{Counters: map[string]int64{}, Offloads: map[string]bool{}}
		for _, a := range parseAttributes(payload[unix.SizeofIfInfomsg:]) {
			switch a.kind {
			case unix.IFLA_IFNAME:
				f.Name = unix.ByteSliceToString(a.data)
			case unix.IFLA_MTU:
				f.MTUBytes = int(a.number())
			case unix.IFLA_QDISC:
				f.Qdisc = unix.ByteSliceToString(a.data)
			case unix.IFLA_TXQLEN:
				f.TxQueueLen = int(a.number())
			case unix.IFLA_STATS64:
				// struct rtnl_link_stats64 (include/uapi/linux/if_link.h)
				for at, name := range map[int]string{0: "rx_packets", 1: "tx_packets", 4: "rx_errors", 5: "tx_errors",
					6: "rx_dropped", 7: "tx_dropped", 9: "collisions", 14: "rx_fifo_errors", 15: "rx_missed_errors"} {
					f.Counters[name] = u64(a.data, at)
				}
			}
		}
		f.SpeedBps, f.Duplex = linkSettings(fd, f.Name)
		for name, command := range map[string]uint32{"tso": unix.ETHTOOL_GTSO, "gso": unix.ETHTOOL_GGSO,
			"gro": unix.ETHTOOL_GGRO} {
			value := struct{ command, data uint32 }{command: command}
			if ethtool(fd, f.Name, unsafe.Pointer(&value)) {
				f.Offloads[name] = value.data != 0
			}
		}
		// struct ethtool_ringparam
		ring := struct {
			command, rxMax, miniMax, jumboMax, txMax, rx, mini, jumbo,
			tx uint32
		}{command: unix.ETHTOOL_GRINGPARAM}
		if ethtool(fd, f.Name, unsafe.Pointer(&ring)) && ring.rxMax > 0 {
			f.Ring = &audit.Ring{RX: int(ring.rx), RXMax: int(ring.rxMax), TX: int(ring.tx), TXMax: int(ring.txMax)}
		}
		s.Interfaces = append(s.Interfaces, f)
	})
}

// linkSettings returns the negotiated speed and duplex; 0 and "" are unknown (struct ethtool_cmd).
func linkSettings(fd int, name string) (bps int64, duplex string) {
	const speedUnknown = 1<<32 - 1
	settings := struct {
		command, supported, advertising uint32
		speed                           uint16
		duplex, port                    byte
		address, transceiver, negotiate byte
		mdio                            byte
		maxTx, maxRx                    uint32
		speedHigh                       uint16
		rest                            [14]byte
	}{command: unix.ETHTOOL_GSET}
	if !ethtool(fd, name, unsafe.Pointer(&settings)) {
		return 0, ""
	}
	mbit := uint32(settings.speedHigh)<<16 | uint32(settings.speed)
	if mbit != 0 && mbit != speedUnknown && mbit != 0xffff {
		bps = int64(mbit) * 1e6
	}
	switch settings.duplex {
	case 0:
		duplex = "half"
	case 1:
		duplex = "full"
	}
	if bps == 0 {
		duplex = "" // virtual cards report half duplex without a meaning
	}
	return bps, duplex
}

// ethtool queries a driver (SIOCETHTOOL). It returns false if the driver does not support the query.
func ethtool(fd int, name string, data unsafe.Pointer) bool {
	request := struct {
		name [unix.IFNAMSIZ]byte
		data unsafe.Pointer
		_    [16]byte
	}{data: data}
	copy(request.name[:unix.IFNAMSIZ-1], name)
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SIOCETHTOOL, uintptr(unsafe.Pointer(&request)))
	return errno == 0
}

func interfaceName(index int) string {
	i, err := net.InterfaceByIndex(index)
	if err != nil {
		return ""
	}
	return string(bytes.TrimRight([]byte(i.Name), "\x00"))
}

// readQdiscs reads the root qdiscs' counters, and the rate of a token bucket.
func readQdiscs(s *audit.Snapshot) error {
	const (
		messageSize = 20 // struct tcmsg
		ifindexAt   = 4
		parentAt    = 12
		root        = 0xffffffff // TC_H_ROOT
	)
	return dump(unix.RTM_GETQDISC, make([]byte, messageSize), func(payload []byte) {
		if len(payload) < messageSize || binary.NativeEndian.Uint32(payload[parentAt:]) != root {
			return
		}
		name := interfaceName(int(int32(binary.NativeEndian.Uint32(payload[ifindexAt:]))))
		for i := range s.Interfaces {
			if f := &s.Interfaces[i]; f.Name == name {
				readQdisc(f, parseAttributes(payload[messageSize:]))
			}
		}
	})
}

// readQdisc reads one root qdisc (include/uapi/linux/rtnetlink.h TCA_, gen_stats.h,
// pkt_sched.h TCA_TBF_).
func readQdisc(f *audit.Interface, attributes []attribute) {
	const (
		tcaKind, tcaOptions, tcaStats2 = 1, 2, 7
		statsBasic, statsQueue         = 1, 3 // struct gnet_stats_basic, gnet_stats_queue
		tbfParms, tbfRate64            = 1, 4
		rateAt                         = 8 // of struct tc_ratespec, bytes a second
	)
	kind := ""
	for _, a := range attributes {
		switch a.kind {
		case tcaKind:
			kind = unix.ByteSliceToString(a.data)
		case tcaStats2:
			for _, s := range parseAttributes(a.data) {
				switch {
				case s.kind == statsBasic && len(s.data) >= 12:
					f.Counters["qdisc_packets"] = int64(binary.NativeEndian.Uint32(s.data[8:]))
				case s.kind == statsQueue && len(s.data) >= 12:
					f.Counters["qdisc_dropped"] = int64(binary.NativeEndian.Uint32(s.data[8:]))
				}
			}
		}
	}
	if kind != "tbf" {
		return
	}
	for _, a := range attributes {
		if a.kind != tcaOptions {
			continue
		}
		for _, o := range parseAttributes(a.data) {
			switch {
			case o.kind == tbfParms && len(o.data) >= rateAt+4 && f.ShapeBps == 0:
				f.ShapeBps = 8 * int64(binary.NativeEndian.Uint32(o.data[rateAt:]))
			case o.kind == tbfRate64 && len(o.data) >= 8:
				f.ShapeBps = 8 * u64(o.data, 0)
			}
		}
	}
}
