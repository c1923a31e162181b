package capture

import (
	"testing"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"

	"github.com/fullpipe-net/fullpipe/internal/flow"
)

// TestDecode_VerifiesChecksums compares with checksums that another implementation computed, for IPv4 and IPv6,
// with one step for plain packets and layer by layer.
func TestDecode_VerifiesChecksums(t *testing.T) {
	for _, v6 := range []bool{false, true} {
		for _, payload := range []int{1, 7, 1000, 1448} {
			for _, words := range []int{0, 3, 4} { // of options
				frame, at := withChecksum(t, v6, payload, words)
				check := func(name string, data []byte, want bool) {
					t.Helper()
					var s flow.Segment
					kind := Decode(&Packet{Data: data, Length: len(frame), Link: linkEthernet}, &s)
					if kind != TCP || (s.Options&flow.BadChecksum != 0) != want {
						t.Errorf("IPv6 %t, %d bytes, %d words of options, %s: kind %v, options %b", v6, payload, words, name,
							kind, s.Options)
					}
				}
				check("right", frame, false)
				last := at + 20 + 4*words + payload - 1 // short frames are padded
				check("cut", frame[:last], false)
				damaged := append([]byte(nil), frame...)
				damaged[last-payload/2] ^= 0x40
				check("damaged", damaged, true)
				check("cut and damaged", damaged[:last], false)

				// The device is to add the sum of the segment to that of the pseudo-header.
				rest := append([]byte(nil), frame[at:]...)
				full := uint64(^(uint16(rest[16])<<8 | uint16(rest[17])))
				rest[16], rest[17] = 0, 0
				for i := 0; i < len(rest); i += 2 {
					pair := uint64(rest[i]) << 8
					if i+1 < len(rest) {
						pair |= uint64(rest[i+1])
					}
					full += 0xffff - pair
				}
				partial := append([]byte(nil), frame...)
				partial[at+16], partial[at+17] = byte(fold(full)>>8), byte(fold(full))
				check("left to the device", partial, false)
			}
		}
	}
}

// withChecksum returns a frame with a TCP segment, and where the segment begins.
func withChecksum(t *testing.T, v6 bool, payload, optionWords int) (frame []byte, at int) {
	t.Helper()
	tcp := &layers.TCP{SrcPort: 40000, DstPort: 443, Seq: 1000, Ack: 2000, ACK: true, Window: 501}
	if optionWords >= 3 {
		tcp.Options = []layers.TCPOption{{OptionType: 1}, {OptionType: 1},
			{OptionType: 8, OptionLength: 10, OptionData: []byte{1, 2, 3, 4, 5, 6, 7, 8}}}
	}
	for range optionWords - 3 {
		tcp.Options = append(tcp.Options, layers.TCPOption{OptionType: 2, OptionLength: 4, OptionData: []byte{5, 180}})
	}
	data := make([]byte, payload)
	for i := range data {
		data[i] = byte(37 * i)
		if payload == 1000 { // each sum carries
			data[i] = 0xff
		}
	}
	var ip interface {
		gopacket.SerializableLayer
		gopacket.NetworkLayer
	}
	ether := &layers.Ethernet{SrcMAC: make([]byte, 6), DstMAC: make([]byte, 6), EthernetType: layers.EthernetTypeIPv4}
	at = 14 + 20
	ip = &layers.IPv4{Version: 4, TTL: 64, Protocol: layers.IPProtocolTCP, SrcIP: []byte{192, 0, 2, 1},
		DstIP: []byte{198, 51, 100, 2}}
	if v6 {
		at = 14 + 40
		ether.EthernetType = layers.EthernetTypeIPv6
		ip = &layers.IPv6{Version: 6, HopLimit: 64, NextHeader: layers.IPProtocolTCP,
			SrcIP: append([]byte{0x20, 1, 0x0d, 0xb8}, make([]byte, 12)...), DstIP: append([]byte{0xfd}, make([]byte, 15)...)}
	}
	err := tcp.SetNetworkLayerForChecksum(ip)
	if err != nil {
		t.Fatal(err)
	}
	buffer := gopacket.NewSerializeBuffer()
	err = gopacket.SerializeLayers(buffer, gopacket.SerializeOptions{FixLengths: true, ComputeChecksums: true}, ether, ip,
		tcp, gopacket.Payload(data))
	if err != nil {
		t.Fatal(err)
	}
	return buffer.Bytes(), at
}
