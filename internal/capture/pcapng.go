package capture

import (
	"encoding/binary"
	"errors"
	"io"
	"math"
	"math/bits"

	"github.com/fullpipe-net/fullpipe/internal/flow"
)

// The next generation format: draft-ietf-opsawg-pcapng.
const (
	blockSection   = 0x0a0d0d0a
	blockInterface = 1
	blockPacket    = 2 // obsolete
	blockSimple    = 3
	blockCounters  = 5 // "interface statistics"
	blockEnhanced  = 6

	byteOrderMagic = 0x1a2b3c4d

	optionEnd        = 0
	optionResolution = 9  // of an interface
	optionOffset     = 14 // of an interface
	optionDropped    = 5  // of its counters: by the interface for want of resources
	optionOSDropped  = 7  // of its counters: by the operating system

	maxInterfaces = 1 << 16
	maxInterface  = 64 << 10 // bytes of an interface's description
)

// iface is what packets need of an interface's description.
type iface struct {
	link    LinkType
	snaplen uint32
	perTick uint64 // nanoseconds of one tick, or
	perSec  uint64 // ticks of one second, where that is not a whole number of nanoseconds
	offset  int64  // seconds
	lost    uint64 // packets, by the counters seen last
}

func (f *File) nextBlock(p *Packet) error {
	for {
		head, err := f.in.peek(8)
		if err != nil {
			if len(head) == 0 && errors.Is(err, io.EOF) {
				return io.EOF
			}
			return f.damage(err, "a block's header is cut after %d bytes", len(head))
		}
		if binary.LittleEndian.Uint32(head) == blockSection {
			if err := f.section(); err != nil {
				return err
			}
			continue
		}
		kind := f.order.Uint32(head)
		size := f.order.Uint32(head[4:])
		if size < 12 || size%4 != 0 {
			return f.damage(nil, "a block claims %d bytes; the file is corrupt here", size)
		}
		switch kind {
		case blockEnhanced, blockPacket, blockSimple:
			if size > maxRecord {
				return f.damage(nil, "a packet's block claims %d bytes; the file is corrupt here", size)
			}
			block, err := f.in.peek(int(size))
			if err != nil {
				return f.damage(err, "a block of %d bytes is cut after %d", size, len(block))
			}
			why := f.packet(kind, block[8:len(block)-4], p)
			if why != "" {
				return f.damage(nil, "%s", why)
			}
			f.in.a += len(block)
			return nil
		case blockInterface:
			if err := f.addInterface(size); err != nil {
				return err
			}
		case blockCounters:
			if err := f.counters(size); err != nil {
				return f.damage(err, "an interface's statistics of %d bytes are cut", size)
			}
		default:
			if err := f.in.skip(int64(size)); err != nil {
				return f.damage(err, "a block of %d bytes is cut", size)
			}
		}
	}
}

// plainBlocks decodes the next packets as long as they lie whole in the buffer and are plain, in little-endian blocks
// as nearly all are; nextBlock reads the one that stopped it. It returns the number of packets.
func (f *File) plainBlocks(to []flow.Segment) int {
	const header, trailer = 28, 4
	if f.order != binary.LittleEndian {
		return 0
	}
	le := binary.LittleEndian
	rest := f.in.buf[f.in.a:f.in.b]
	n := 0
	for ; n < len(to) && len(rest) >= header+trailer; n++ {
		head := (*[header]byte)(rest)
		s := &to[n]
		kind := le.Uint32(head[:4])
		size := le.Uint32(head[4:8])
		index := le.Uint32(head[8:12])
		captured := le.Uint32(head[20:24])
		if kind != blockEnhanced || size > maxRecord || size%4 != 0 || int(size) > len(rest) ||
			uint64(index) >= uint64(len(f.interfaces)) || uint64(captured)+header+trailer > uint64(size) {
			break
		}
		i := &f.interfaces[index]
		s.At = i.time(uint64(le.Uint32(head[12:16]))<<32 | uint64(le.Uint32(head[16:20])))
		s.Interface = uint16(index)
		if !decodePlain(rest[header:header+captured], plain(i.link), s) {
			break
		}
		rest = rest[size:]
	}
	f.in.a = f.in.b - len(rest)
	return n
}

func (f *File) section() error {
	head, err := f.in.peek(28)
	if err != nil {
		return f.damage(err, "a section's header is cut after %d bytes", len(head))
	}
	switch uint32(byteOrderMagic) {
	case binary.LittleEndian.Uint32(head[8:]):
		f.order = binary.LittleEndian
	case binary.BigEndian.Uint32(head[8:]):
		f.order = binary.BigEndian
	default:
		return f.damage(nil, "a section's byte order mark is % x", head[8:12])
	}
	size := f.order.Uint32(head[4:])
	if size < 28 || size%4 != 0 {
		return f.damage(nil, "a section's header claims %d bytes; the file is corrupt here", size)
	}
	if major := f.order.Uint16(head[12:]); major != 1 {
		return f.damage(nil, "a section of pcapng version %d; only 1 is known", major)
	}
	f.interfaces = f.interfaces[:0]
	if err := f.in.skip(int64(size)); err != nil {
		return f.damage(err, "a section's header of %d bytes is cut", size)
	}
	return nil
}

func (f *File) addInterface(size uint32) error {
	if size < 20 || size > maxInterface {
		return f.damage(nil, "an interface's description claims %d bytes; the file is corrupt here", size)
	}
	block, err := f.in.peek(int(size))
	if err != nil {
		return f.damage(err, "an interface's description of %d bytes is cut after %d", size, len(block))
	}
	if len(f.interfaces) == maxInterfaces {
		return f.damage(nil, "more than %d interfaces in one section", maxInterfaces)
	}
	i := iface{link: LinkType(f.order.Uint16(block[8:])), snaplen: f.order.Uint32(block[12:]), perTick: 1000}
	f.options(block[16:len(block)-4], func(code uint16, value []byte) {
		switch {
		case code == optionResolution && len(value) == 1:
			i.perTick, i.perSec = resolution(value[0])
		case code == optionOffset && len(value) == 8:
			i.offset = int64(f.order.Uint64(value))
		}
	})
	f.interfaces = append(f.interfaces, i)
	f.in.a += len(block)
	return nil
}

// counters takes from an interface's statistics what the capture lost.
func (f *File) counters(size uint32) error {
	if size > maxInterface { // nothing that is known here is so long
		return f.in.skip(int64(size))
	}
	block, err := f.in.peek(int(size))
	if err != nil {
		return err
	}
	if index := f.order.Uint32(block[8:]); size >= 24 && int64(index) < int64(len(f.interfaces)) {
		const believable = 1 << 40
		i := &f.interfaces[index]
		lost := uint64(0)
		f.options(block[20:len(block)-4], func(code uint16, value []byte) {
			if (code == optionDropped || code == optionOSDropped) && len(value) == 8 {
				lost += min(f.order.Uint64(value), believable)
			}
		})
		if lost > i.lost { // counted since the beginning
			f.lost += int64(lost - i.lost)
			i.lost = lost
		}
	}
	f.in.a += len(block)
	return nil
}

// options gives each option of a block to take.
func (f *File) options(options []byte, take func(code uint16, value []byte)) {
	for len(options) >= 4 {
		code := f.order.Uint16(options)
		length := int(f.order.Uint16(options[2:]))
		options = options[4:]
		if code == optionEnd || length > len(options) {
			return
		}
		take(code, options[:length])
		options = options[min(len(options), (length+3)&^3):]
	}
}

// resolution reads if_tsresol: a negative power of ten, or of two with the top bit set.
func resolution(v byte) (perTick, perSec uint64) {
	if v&0x80 != 0 {
		return 0, 1 << min(v&0x7f, 63)
	}
	if v <= 9 {
		return uint64(math.Pow10(9 - int(v))), 0
	}
	return 0, uint64(math.Pow10(int(min(v, 19))))
}

func (i *iface) time(ticks uint64) int64 {
	var ns uint64
	if i.perTick > 0 {
		ns = ticks * i.perTick
	} else {
		sec := ticks / i.perSec
		rest := ticks % i.perSec
		high, low := bits.Mul64(rest, 1e9)
		frac, _ := bits.Div64(high, low, i.perSec)
		ns = sec*1e9 + frac
	}
	return int64(ns) + i.offset*1e9
}

// packet reads a packet's block without its header and trailer. It returns why it cannot.
func (f *File) packet(kind uint32, body []byte, p *Packet) string {
	var index, captured uint32
	var ticks uint64
	fixed := 20
	switch {
	case kind == blockSimple && len(body) >= 4:
		fixed = 4
		p.Length = int(f.order.Uint32(body))
		captured = uint32(p.Length)
		if len(f.interfaces) > 0 && f.interfaces[0].snaplen > 0 {
			captured = min(captured, f.interfaces[0].snaplen)
		}
		captured = min(captured, uint32(len(body)-fixed))
	case kind != blockSimple && len(body) >= fixed:
		index = f.order.Uint32(body)
		if kind == blockPacket {
			index = uint32(f.order.Uint16(body))
		}
		ticks = uint64(f.order.Uint32(body[4:]))<<32 | uint64(f.order.Uint32(body[8:]))
		captured = f.order.Uint32(body[12:])
		p.Length = int(f.order.Uint32(body[16:]))
	default:
		return "a packet's block is too short"
	}
	if int64(index) >= int64(len(f.interfaces)) {
		return "a packet names an interface that the section does not describe"
	}
	if uint64(captured) > uint64(len(body)-fixed) {
		return "a packet is longer than its block"
	}
	i := &f.interfaces[index]
	p.At = i.time(ticks)
	p.Data = body[fixed : fixed+int(captured)]
	p.Length = max(p.Length, int(captured))
	p.Link = i.link
	p.Interface = uint16(index)
	return ""
}
