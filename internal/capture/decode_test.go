package capture

import (
	"testing"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"

	"github.com/fullpipe-net/fullpipe/internal/flow"
)

func TestDecodeThroughLayers(t *testing.T) {
	tcp := segment(5201, 40000, 1000, 2000, 100)
	v4, v6 := ip4(protoTCP, "10.0.0.1", "10.0.0.2", tcp), ip6(protoTCP, "fd00::1", "fd00::2", tcp)
	frame := ether(typeIPv4, v4)
	outer := func(protocol int, inner []byte) []byte {
		return ether(typeIPv4, ip4(protocol, "192.0.2.1", "192.0.2.2", inner))
	}
	snap := be(0xaa, 0xaa, 3, 0, 0, 0)
	hop := be(protoTCP, 0, 0xc2, 4, uint32(8+len(tcp)))
	tests := map[string]struct {
		link LinkType
		data []byte
	}{
		"ethernet":        {linkEthernet, frame},
		"ethernet padded": {linkEthernet, append(ether(typeIPv4, v4), 0, 0, 0, 0)},
		"vlan":            {linkEthernet, be(macs, uint16(typeVLAN), uint16(7), uint16(typeIPv4), v4)},
		"qinq": {linkEthernet, be(macs, uint16(typeQinQ), uint16(7), uint16(typeVLAN), uint16(8),
			uint16(typeIPv6), v6)},
		"ipv6": {linkEthernet, ether(typeIPv6, v6)},
		"ipv6 options": {linkEthernet, ether(typeIPv6, ip6(protoOptions, "fd00::1", "fd00::2",
			be(protoTCP, 0, make([]byte, 6), tcp)))},
		"ipv6 jumbogram":   {linkRaw, be(uint32(6<<28), uint16(0), protoHopByHop, 64, v6[8:40], hop, tcp)},
		"ipv4 length 0":    {linkRaw, be(v4[:2], uint16(0), v4[4:])},
		"raw":              {linkRaw, v6},
		"loopback":         {linkNull, be(uint32(2<<24), v4)},
		"cooked":           {linkLinuxSLL, be(make([]byte, 14), uint16(typeIPv4), v4)},
		"cooked 2":         {linkLinuxSLL2, be(uint16(typeIPv6), make([]byte, 18), v6)},
		"pppoe":            {linkEthernet, ether(typePPPoE, be(0x11, 0, uint16(1), uint16(2+len(v4)), uint16(0x21), v4))},
		"ppp":              {linkPPP, be(0xff, 3, 0x21, v4)},
		"cisco hdlc":       {linkCiscoHDLC, be(0x0f, 0, uint16(typeIPv4), v4)},
		"mpls":             {linkEthernet, ether(typeMPLS, be(uint32(16<<12|64), uint32(17<<12|1<<8|64), v4))},
		"mpls ethernet":    {linkEthernet, ether(typeMPLS, be(uint32(17<<12|1<<8|64), uint32(0), frame))},
		"ip in ip":         {linkEthernet, outer(protoIPIP, v4)},
		"6in4":             {linkEthernet, outer(protoIPv6, v6)},
		"gre":              {linkEthernet, outer(protoGRE, be(uint16(0), uint16(typeIPv4), v4))},
		"gre key, bridged": {linkEthernet, outer(protoGRE, be(uint16(0x2000), uint16(typeBridged), uint32(5), frame))},
		"erspan": {linkEthernet, outer(protoGRE, be(uint16(0x1000), uint16(typeERSPAN), uint32(1), uint32(0),
			uint32(0), frame))},
		"vxlan": {linkEthernet, outer(protoUDP, udp(portVXLAN, be(uint32(8<<24), uint32(77<<8), frame)))},
		"vxlan in erspan": {linkEthernet, outer(protoGRE, be(uint16(0x1000), uint16(typeERSPAN), uint32(1), uint32(0),
			uint32(0), outer(protoUDP, udp(portVXLAN, be(uint32(8<<24), uint32(77<<8), frame)))))},
		"erspan 3": {linkEthernet, outer(protoGRE, be(uint16(0x1000), uint16(typeERSPAN3), uint32(1),
			make([]byte, 12), frame))},
		"erspan 3, longer": {linkEthernet, outer(protoGRE, be(uint16(0x1000), uint16(typeERSPAN3), uint32(1),
			make([]byte, 11), 1, make([]byte, 8), frame))},
		"gtp-u": {linkEthernet, outer(protoUDP, udp(portGTP, be(0x30, 0xff, uint16(len(v4)), uint32(9), v4)))},
		"gtp-u, extended": {linkEthernet, outer(protoUDP, udp(portGTP, be(0x34, 0xff, uint16(len(v4)+8), uint32(9),
			uint16(0), 0, 0x85, 1, 0x10, 9, 0, v6)))},
		"fddi":            {linkFDDI, be(0x57, macs, snap, uint16(typeIPv4), v4)},
		"802.3 with snap": {linkEthernet, be(macs, uint16(8+len(v4)), snap, uint16(typeIPv4), v4)},
		"atm":             {linkATM, be(snap, uint16(typeIPv6), v6)},
		"slip":            {linkSLIP, be(make([]byte, 16), v4)},
		"nflog": {linkNFLOG, be(2, 0, uint16(5), 8, 0, 1, 0, uint32(0), 6, 0, 10, 0, make([]byte, 4),
			byte(4+len(v4)), 0, 9, 0, v4)},
		"nflog, big endian": {linkNFLOG, be(2, 0, uint16(5), uint16(8), uint16(1), uint32(0), uint16(4+len(v4)), uint16(9),
			v4)},
		"ip over infiniband": {linkIPoIB, be(make([]byte, 40), uint16(typeIPv4), uint16(0), v4)},
		"802.11":             {linkWireless, be(8, 1, make([]byte, 22), snap, uint16(typeIPv4), v4)},
		"radiotap, qos": {linkRadiotap, be(0, 0, 10, 0, make([]byte, 6), 0x88, 2, make([]byte, 24), snap,
			uint16(typeIPv6), v6)},
		"ppi": {linkPPI, be(0, 0, 12, 0, 105, 0, 0, 0, uint32(0), 8, 3, make([]byte, 28), snap,
			uint16(typeIPv4), v4)},
		"prism": {linkPrism, be(make([]byte, 144), 8, 1, make([]byte, 22), snap, uint16(typeIPv4), v4)},
		"avs": {linkAVS, be(uint32(0x80211001), uint32(16), make([]byte, 8), 8, 1, make([]byte, 22), snap,
			uint16(typeIPv4), v4)},
		"juniper":           {linkJuniper, be([]byte("MGC"), 1, frame)},
		"juniper, extended": {linkJuniper, be([]byte("MGC"), 0x81, uint16(6), make([]byte, 6), frame)},
		"juniper, no link":  {linkJuniper, be([]byte("MGC"), 2, uint32(2), v4)},
		"juniper ppp":       {linkJunPPP, be([]byte("MGC"), 1, 0xff, 3, 0x21, v4)},
		"erf in pcap": {linkERF, be(make([]byte, 8), 2, 0, uint16(18+len(frame)), uint16(0), uint16(len(frame)),
			uint16(0), frame)},
		"mpls alone": {linkMPLS, be(uint32(17<<12|1<<8|64), v4)},
		"geneve with option": {linkEthernet, outer(protoUDP, udp(portGeneve, be(1, 0, uint16(typeBridged), uint32(0),
			uint32(0), frame)))},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			p := Packet{Data: test.data, Length: len(test.data), Link: test.link}
			var s flow.Segment
			if k := Decode(&p, &s); k != TCP {
				t.Fatalf("kind %d, want TCP", k)
			}
			if s.Src.Port != 5201 || s.Seq != 1000 || s.Payload != 100 || s.TSVal != 111 || s.TSEcr != 222 || s.Window != 501 {
				t.Errorf("%+v", s)
			}
			if from := s.Src.AddrPort().String(); from != "10.0.0.1:5201" && from != "[fd00::1]:5201" {
				t.Errorf("from %s", from)
			}
		})
	}
}

func TestDecodeTooBig(t *testing.T) {
	lost := ip4(protoTCP, "10.0.0.1", "10.0.0.2", segment(1, 2, 1000, 2000, 1400))[:28]
	data := ether(typeIPv4, ip4(protoICMP, "10.0.0.9", "10.0.0.1", be(3, 4, uint16(0), uint16(0), uint16(1280), lost)))
	var s flow.Segment
	if k := Decode(&Packet{Data: data, Length: len(data), Link: linkEthernet}, &s); k != TooBig || s.MSS != 1280 ||
		s.Seq != 1000 || s.Dst.Port != 2 {
		t.Errorf("kind %d, %+v", k, s)
	}
}

// gopacketSegment decodes with the oracle.
func gopacketSegment(data []byte) (flow.Segment, bool) {
	packet := gopacket.NewPacket(data, layers.LayerTypeEthernet, gopacket.DecodeOptions{NoCopy: true})
	tcp, ok := packet.Layer(layers.LayerTypeTCP).(*layers.TCP)
	if !ok || packet.ErrorLayer() != nil {
		return flow.Segment{}, false
	}
	return flow.Segment{Seq: tcp.Seq, Ack: tcp.Ack, Window: tcp.Window, Payload: uint32(len(tcp.Payload)),
		Src: flow.Endpoint{Port: uint16(tcp.SrcPort)}, Dst: flow.Endpoint{Port: uint16(tcp.DstPort)}}, true
}

func FuzzDecode(f *testing.F) {
	tcp := segment(5201, 40000, 1000, 2000, 10)
	f.Add(uint16(1), ether(typeIPv4, ip4(protoTCP, "10.0.0.1", "10.0.0.2", tcp)))
	f.Add(uint16(1), ether(typeIPv6, ip6(protoTCP, "fd00::1", "fd00::2", tcp)))
	f.Add(uint16(1), ether(typeIPv4, ip4(protoICMP, "10.0.0.9", "10.0.0.1", be(3, 4, uint32(0), uint16(1280),
		ip4(protoTCP, "10.0.0.1", "10.0.0.2", tcp)))))
	f.Add(uint16(1), ether(typeIPv4, ip4(protoTCP, "10.0.0.1", "10.0.0.2",
		append(tcp[:12:12], append([]byte{0x50}, tcp[13:20]...)...))))
	f.Add(uint16(276), be(uint16(typeIPv6), make([]byte, 18), ip6(protoHopByHop, "::1", "::2",
		be(6, 0, 0xc2, 4, uint32(1<<30), tcp))))
	for _, link := range []LinkType{linkFDDI, linkNFLOG, linkIPoIB, linkRadiotap, linkPPI, linkAVS, linkJuniper, linkERF,
		linkATM} {
		f.Add(uint16(link), be(2, 0, uint16(10), uint16(8), uint16(9), uint32(0x80211001), make([]byte, 40), tcp))
	}
	f.Add(uint16(1), ether(typeIPv4, ip4(protoUDP, "10.0.0.1", "10.0.0.2",
		udp(portGTP, be(0x34, 0xff, uint32(8), uint16(0), uint16(0), 0, 0x85, 1, tcp)))))
	f.Fuzz(func(t *testing.T, link uint16, data []byte) {
		p := Packet{Data: data, Length: len(data), Link: LinkType(link)}
		var s, bare flow.Segment
		kind := Decode(&p, &s)
		if decodePlain(data, plain(p.Link), &bare) {
			var layered flow.Segment
			if k := decodeLayers(&p, &layered); k != TCP || layered != bare {
				t.Fatalf("at once %+v, layer by layer kind %d, %+v", bare, k, layered)
			}
		}
		if kind != TCP || p.Link != linkEthernet || len(data) < 54 || data[12] != 8 || data[13] != 0 ||
			data[23] != protoTCP ||
			data[16]|data[17] == 0 || s.Options&flow.IsFragment != 0 || int(data[16])<<8|int(data[17]) > len(data)-14 {
			return
		}
		want, ok := gopacketSegment(data)
		if ok && (want.Seq != s.Seq || want.Ack != s.Ack || want.Window != s.Window || want.Payload != s.Payload ||
			want.Src.Port != s.Src.Port || want.Dst.Port != s.Dst.Port) {
			t.Errorf("got %+v, gopacket says %+v", s, want)
		}
	})
}

func BenchmarkDecode(b *testing.B) {
	data := ether(typeIPv4, ip4(protoTCP, "10.0.0.1", "10.0.0.2", segment(5201, 40000, 1000, 2000, 0)))
	p := Packet{Data: data, Length: len(data) + 1448, Link: linkEthernet}
	var s flow.Segment
	b.ReportAllocs()
	for b.Loop() {
		if Decode(&p, &s) != TCP {
			b.Fatal("not TCP")
		}
	}
}

// inVXLAN returns an IPv6 segment in VXLAN.
func inVXLAN() *Packet {
	inner := ether(typeIPv6, ip6(protoTCP, "fd00::1", "fd00::2", segment(5201, 40000, 1000, 2000, 0)))
	data := ether(typeIPv4, ip4(protoUDP, "192.0.2.1", "192.0.2.2", udp(portVXLAN, be(uint32(8<<24), uint32(77<<8),
		inner))))
	return &Packet{Data: data, Length: len(data) + 1448, Link: linkEthernet}
}

func BenchmarkDecodeVXLAN(b *testing.B) {
	p := inVXLAN()
	var s flow.Segment
	b.ReportAllocs()
	for b.Loop() {
		if Decode(p, &s) != TCP {
			b.Fatal("not TCP")
		}
	}
}

// TestDecode_AllocatesNothing checks packets with many headers; those with few take the same way or a shorter one.
func TestDecode_AllocatesNothing(t *testing.T) {
	p := inVXLAN()
	var s flow.Segment
	if n := testing.AllocsPerRun(100, func() { Decode(p, &s) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestDecodeFragments(t *testing.T) {
	datagram := ip4(protoTCP, "10.0.0.1", "10.0.0.2", segment(5201, 40000, 1000, 2000, 1448))
	piece := func(from, to int, fragment uint16) []byte {
		head := be(datagram[:2], uint16(20+to-from), datagram[4:6], fragment, datagram[8:20])
		return ether(typeIPv4, be(head, datagram[20+from:20+to]))
	}
	first, later := piece(0, 800, 0x2000), piece(800, 1480, 100)
	six := func(offset uint16) []byte {
		return ether(typeIPv6, ip6(protoFragment, "fd00::1", "fd00::2", be(protoTCP, 0, offset, uint32(7), datagram[20:820])))
	}
	for name, test := range map[string]struct {
		data []byte
		kind Kind
	}{"first": {first, TCP}, "later": {later, Fragment}, "first, IPv6": {six(1), TCP}, "later, IPv6": {six(800 | 1),
		Fragment}} {
		var s flow.Segment
		k := Decode(&Packet{Data: test.data, Length: len(test.data), Link: linkEthernet}, &s)
		if k != test.kind || k == TCP && (s.Payload != 768 || s.Options&flow.IsFragment == 0) {
			t.Errorf("%s: kind %d, %+v", name, k, s)
		}
	}
}
