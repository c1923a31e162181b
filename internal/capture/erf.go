package capture

import (
	"encoding/binary"
	"errors"
	"io"
	"math/bits"
)

// The extensible record format of Endace's cards: records without a file header. A record
// begins with its time in 2^-32 seconds, little endian, its type, flags, its length, a count of
// lost packets, and the length on the wire, big endian.
const erfHeader = 16

// erfLayer returns the type of the first header of a record's packet, and the number of bytes before it.
func erfLayer(kind byte) (link LinkType, before int, known bool) {
	switch kind & 0x7f {
	case 2, 11, 16, 20: // Ethernet: an offset and padding
		return linkEthernet, 2, true
	case 1, 10, 15, 19: // packet over SONET
		return linkPPPHDLC, 0, true
	case 22, 23:
		return linkRaw, 0, true
	}
	return 0, 0, false
}

// isERF reports whether the first bytes of a file make sense as such records: there is no other
// mark.
func isERF(head []byte) bool {
	const begin, end = 631152000, 4102444800 // 1990, 2100
	records := 0
	first := uint32(0)
	for len(head) >= erfHeader {
		sec := binary.LittleEndian.Uint32(head[4:])
		size := int(binary.BigEndian.Uint16(head[10:]))
		_, _, known := erfLayer(head[8])
		if sec < begin || sec > end || size < erfHeader || !known && records == 0 || head[8]&0x7f == 0 || head[8]&0x7f > 48 {
			return false
		}
		if records == 0 {
			first = sec
		}
		const day = 24 * 3600
		if sec-first+day > 2*day { // text looks like records too, but not like their times
			return false
		}
		records++
		if size >= len(head) {
			return size == len(head) || records > 1
		}
		head = head[size:]
	}
	return records > 0
}

func (f *File) nextERF(p *Packet) error {
	for {
		head, err := f.in.peek(erfHeader)
		if err != nil {
			if len(head) == 0 && errors.Is(err, io.EOF) {
				return io.EOF
			}
			return f.damage(err, "a record's header is cut after %d bytes", len(head))
		}
		size := int(binary.BigEndian.Uint16(head[10:]))
		if size < erfHeader {
			return f.damage(nil, "a record claims %d bytes; the file is corrupt here", size)
		}
		whole, err := f.in.peek(size)
		if err != nil {
			return f.damage(err, "a record of %d bytes is cut after %d", size, len(whole))
		}
		f.in.a += size
		f.lost += int64(binary.BigEndian.Uint16(whole[12:]))
		if erfPacket(whole, p) {
			return nil
		}
	}
}

// erfPacket reads one record. It returns false for an unknown kind.
func erfPacket(record []byte, p *Packet) bool {
	link, before, known := erfLayer(record[8])
	if !known {
		return false
	}
	stamp := binary.LittleEndian.Uint64(record)
	nano, _ := bits.Mul64(stamp<<32, 1e9)
	data := record[erfHeader:]
	for more := record[8]&0x80 != 0; more; { // extension headers; each says whether one follows
		if len(data) < 8 {
			return false
		}
		more = data[0]&0x80 != 0
		data = data[8:]
	}
	if len(data) < before {
		return false
	}
	data = data[before:]
	p.At = int64(stamp>>32)*1e9 + int64(nano)
	p.Data = data
	p.Length = max(int(binary.BigEndian.Uint16(record[14:])),
		len(data))
	p.Link = link
	p.Interface = uint16(record[9] & 3)
	return true
}
