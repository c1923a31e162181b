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
	head := in.buf[in.a : in.a+recordHeader]
	sec, frac := binary.LittleEndian.Uint32(head), binary.LittleEndian.Uint32(head[4:])
	captured, length := binary.LittleEndian.Uint32(head[8:]), binary.LittleEndian.Uint32(head[12:])
	if f.bigEndian {
		sec, frac = bits.ReverseBytes32(sec), bits.ReverseBytes32(frac)
		captured, length = bits.ReverseBytes32(captured), bits.ReverseBytes32(length)
	}
	if captured > maxRecord {
		return f.damage(nil, "a packet claims %d captured bytes; the file is corrupt here", captured)
	}
	size += int(captured)
	if in.b-in.a < size {
		if record, err := in.fill(size); err != nil {
			return f.damage(err, "a packet of %d bytes is cut after %d", captured, max(0, len(record)-f.recordSize))
		}
	}
	p.Data = in.buf[in.a+f.recordSize : in.a+size]
	in.a += size
	p.At = int64(sec)*1e9 + int64(frac)*f.perTick
	p.Length = int(max(length, captured))
	p.Link = f.link
	p.Interface = 0
	return nil
}
