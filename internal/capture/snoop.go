package capture

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// Solaris' format: RFC 1761.
const (
	magicSnoop  = "snoop\x00\x00\x00"
	snoopHeader = 16
	snoopRecord = 24
)

// snoopLinks are RFC 1761's datalink types that are known here.
var snoopLinks = map[uint32]LinkType{0: linkEthernet, 4: linkEthernet, 8: linkFDDI, 9: linkRaw}

func (f *File) beginSnoop() error {
	head, err := f.in.peek(snoopHeader)
	if err != nil {
		return &NotACapture{File: f.name, Why: "the file header is cut"}
	}
	version := binary.BigEndian.Uint32(head[8:])
	kind := binary.BigEndian.Uint32(head[12:])
	link, known := snoopLinks[kind]
	if version != 2 || !known {
		return &NotACapture{File: f.name, Why: fmt.Sprintf("it is a snoop capture of version %d with datalink type %d, "+
			"which is not read here", version, kind),
			Convert: convert}
	}
	f.link = link
	f.next = f.nextSnoop
	f.in.a += snoopHeader
	return nil
}

func (f *File) nextSnoop(p *Packet) error {
	head, err := f.in.peek(snoopRecord)
	if err != nil {
		if len(head) == 0 && errors.Is(err, io.EOF) {
			return io.EOF
		}
		return f.damage(err, "a packet's header is cut after %d bytes", len(head))
	}
	word := func(i int) uint32 { return binary.BigEndian.Uint32(head[4*i:]) }
	length := word(0)
	captured := word(1)
	size := word(2)
	drops := word(3)
	at := int64(word(4))*1e9 + int64(word(5))*1000
	if captured > maxRecord || size > maxRecord || uint64(size) < snoopRecord+uint64(captured) {
		return f.damage(nil, "a packet claims %d captured bytes in a record of %d; the file is corrupt here", captured, size)
	}
	whole, err := f.in.peek(int(size))
	if err != nil {
		return f.damage(err, "a packet of %d bytes is cut after %d", captured, max(0, len(whole)-snoopRecord))
	}
	f.lost = max(f.lost, int64(drops)) // counted since the beginning
	p.At = at
	p.Data = whole[snoopRecord : snoopRecord+captured]
	p.Length = int(max(length, captured))
	p.Link = f.link
	p.Interface = 0
	f.in.a += int(size)
	return nil
}
