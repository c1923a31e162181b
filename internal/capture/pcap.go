package capture

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/bits"
)

// The classic format: draft-ietf-opsawg-pcap. The modified variant has eight more bytes
// in each record's header.
const (
	magicMicro    = 0xa1b2c3d4
	magicNano     = 0xa1b23c4d
	magicModified = 0xa1b2cd34

	fileHeader   = 24
	recordHeader = 16
)

func (f *File) beginPcap(magic []byte) error {
	f.recordSize = recordHeader
	for _, order := range []binary.ByteOrder{binary.LittleEndian, binary.BigEndian} {
		switch order.Uint32(magic) {
		case magicMicro:
			f.order, f.perTick = order, 1000
		case magicNano:
			f.order, f.perTick = order, 1
		case magicModified:
			f.order, f.perTick, f.recordSize = order, 1000, recordHeader+8
		}
	}
	f.bigEndian = f.order == binary.BigEndian
	if f.order == nil {
		return &NotACapture{f.name, fmt.Sprintf("it begins with % x, which is neither pcap nor pcapng", magic)}
	}
	head, err := f.in.peek(fileHeader)
	if err != nil {
		return &NotACapture{f.name, "the file header is cut"}
	}
	f.link = LinkType(f.order.Uint32(head[20:]))
	f.in.a += fileHeader
	f.next = f.nextRecord
	return nil
}

// record is the header before each packet.
type record struct{ sec, frac, captured, length uint32 }

func (f *File) record(head []byte) record {
	le := binary.LittleEndian
	r := record{le.Uint32(head), le.Uint32(head[4:]), le.Uint32(head[8:]), le.Uint32(head[12:])}
	if f.bigEndian {
		r.sec, r.frac = bits.ReverseBytes32(r.sec), bits.ReverseBytes32(r.frac)
		r.captured, r.length = bits.ReverseBytes32(r.captured), bits.ReverseBytes32(r.length)
	}
	return r
}

// describe makes p the packet of a record.
func (f *File) describe(p *Packet, r record, data []byte) {
	p.Data = data
	p.At = int64(r.sec)*1e9 + int64(r.frac)*f.perTick
	p.Length = int(max(r.length, r.captured))
	p.Link, p.Interface = f.link, 0
}

func (f *File) nextRecord(p *Packet) error {
	in, size := &f.in, f.recordSize
	if in.b-in.a < size {
		if head, err := in.fill(size); err != nil {
			if len(head) == 0 && errors.Is(err, io.EOF) {
				return io.EOF
			}
			return f.damage(err, "a packet's header is cut after %d bytes", len(head))
		}
	}
	r := f.record(in.buf[in.a:])
	if r.captured > maxRecord {
		return f.damage(nil, "a packet claims %d captured bytes; the file is corrupt here", r.captured)
	}
	size += int(r.captured)
	if in.b-in.a < size {
		if whole, err := in.fill(size); err != nil {
			return f.damage(err, "a packet of %d bytes is cut after %d", r.captured, max(0, len(whole)-f.recordSize))
		}
	}
	f.describe(p, r, in.buf[in.a+f.recordSize:in.a+size])
	in.a += size
	return nil
}

// recordsAtHand reads the packets that lie whole in the buffer, in one go and without
// errors: at the first that is cut or claims too much it leaves off, for nextRecord.
func (f *File) recordsAtHand(packets []Packet) int {
	in := &f.in
	for i := range packets {
		rest := in.buf[in.a:in.b]
		if len(rest) < f.recordSize {
			return i
		}
		r := f.record(rest)
		if r.captured > maxRecord || f.recordSize+int(r.captured) > len(rest) {
			return i
		}
		size := f.recordSize + int(r.captured)
		f.describe(&packets[i], r, rest[f.recordSize:size])
		in.a += size
	}
	return len(packets)
}
