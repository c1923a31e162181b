package capture

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/bits"

	"github.com/fullpipe-net/fullpipe/internal/flow"
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
			f.order = order
			f.perTick = 1000
		case magicNano:
			f.order = order
			f.perTick = 1
		case magicModified:
			f.order = order
			f.perTick = 1000
			f.recordSize = recordHeader + 8
		}
	}
	f.bigEndian = f.order == binary.BigEndian
	if f.order == nil {
		begin, _ := f.in.peek(f.in.b - f.in.a)
		if isERF(begin) {
			f.next = f.nextERF
			return nil
		}
		if why, try := recognise(begin); why != "" {
			return &NotACapture{f.name, why, try}
		}
		return &NotACapture{File: f.name, Why: fmt.Sprintf("it begins with % x, which is no format that is known here",
			magic)}
	}
	head, err := f.in.peek(fileHeader)
	if err != nil {
		return &NotACapture{File: f.name, Why: "the file header is cut"}
	}
	f.link = LinkType(f.order.Uint32(head[20:]))
	f.in.a += fileHeader
	f.next = f.nextRecord
	f.plain = f.plainRecords
	return nil
}

// record is the header before each packet.
type record struct{ sec, frac, captured, length uint32 }

func readRecord(head *[recordHeader]byte, bigEndian bool) record {
	le := binary.LittleEndian
	r := record{le.Uint32(head[:4]), le.Uint32(head[4:8]), le.Uint32(head[8:12]), le.Uint32(head[12:])}
	if bigEndian {
		r.sec = bits.ReverseBytes32(r.sec)
		r.frac = bits.ReverseBytes32(r.frac)
		r.captured = bits.ReverseBytes32(r.captured)
		r.length = bits.ReverseBytes32(r.length)
	}
	return r
}

// at is the record's time, nanoseconds since 1970.
func (r record) at(perTick int64) int64 { return int64(r.sec)*1e9 + int64(r.frac)*perTick }

func (f *File) nextRecord(p *Packet) error {
	in := &f.in
	size := f.recordSize
	head, err := in.peek(size)
	if err != nil {
		if len(head) == 0 && errors.Is(err, io.EOF) {
			return io.EOF
		}
		return f.damage(err, "a packet's header is cut after %d bytes", len(head))
	}
	r := readRecord((*[recordHeader]byte)(head), f.bigEndian)
	if r.captured > maxRecord {
		return f.damage(nil, "a packet claims %d captured bytes; the file is corrupt here", r.captured)
	}
	size += int(r.captured)
	whole, err := in.peek(size)
	if err != nil {
		return f.damage(err, "a packet of %d bytes is cut after %d", r.captured, max(0, len(whole)-f.recordSize))
	}
	p.At = r.at(f.perTick)
	p.Data = whole[f.recordSize:]
	p.Length = int(max(r.length, r.captured))
	p.Link = f.link
	p.Interface = 0
	in.a += size
	return nil
}

// plainRecords decodes the next packets as long as they lie whole in the buffer and are plain; nextRecord reads the
// one that stopped it. It returns the number of packets.
func (f *File) plainRecords(to []flow.Segment) int {
	link := plain(f.link)
	header := f.recordSize
	perTick := f.perTick
	bigEndian := f.bigEndian
	rest := f.in.buf[f.in.a:f.in.b]
	n := 0
	for ; n < len(to) && len(rest) >= header; n++ {
		r := readRecord((*[recordHeader]byte)(rest), bigEndian)
		s := &to[n]
		end := header + int(r.captured)
		s.At = r.at(perTick)
		s.Interface = 0
		if r.captured > maxRecord || end > len(rest) || !decodePlain(rest[header:end],
			link, s) {
			break
		}
		rest = rest[end:]
	}
	f.in.a = f.in.b - len(rest)
	return n
}
