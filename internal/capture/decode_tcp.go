package capture

import (
	"encoding/binary"

	"github.com/fullpipe-net/fullpipe/internal/flow"
)

// TCP options.
const (
	optionNop           = 1
	optionMSS           = 2
	optionScale         = 3
	optionSACKPermitted = 4
	optionSACK          = 5
	optionTimestamps    = 8
)

// twoNopsTimestamps is how nearly every stack pads the timestamps option.
const twoNopsTimestamps = optionNop<<24 | optionNop<<16 | optionTimestamps<<8 | 10

func (l *headers) tcp() Kind {
	d := l.rest
	s := l.seg
	if len(d) < 20 {
		return Cut
	}
	header := int(d[12]>>4) * 4
	payload := l.length - header
	if header < 20 || payload < 0 {
		return Malformed
	}
	s.Src.Port = binary.BigEndian.Uint16(d)
	s.Dst.Port = binary.BigEndian.Uint16(d[2:])
	s.Seq = binary.BigEndian.Uint32(d[4:])
	s.Ack = binary.BigEndian.Uint32(d[8:])
	s.Flags = flow.Flags(binary.BigEndian.Uint16(d[12:])) & flow.AllFlags
	s.Window = binary.BigEndian.Uint16(d[14:])
	s.Payload = uint32(payload)
	s.SACKs = 0
	s.TSVal = 0
	s.TSEcr = 0
	verify(d, l.length, s)
	if header == 20 {
		return TCP
	}
	if len(d) < header {
		s.Options |= flow.OptionsCut
		header = len(d)
	}
	readOptions(d[20:header], s)
	return TCP
}

func readOptions(o []byte, s *flow.Segment) {
	for len(o) > 0 {
		kind := o[0]
		if kind == optionEnd {
			return
		}
		if kind == optionNop {
			o = o[1:]
			continue
		}
		if len(o) < 2 || int(o[1]) < 2 || int(o[1]) > len(o) {
			return
		}
		value := o[2:o[1]]
		switch {
		case kind == optionMSS && len(value) == 2:
			s.Options |= flow.HasMSS
			s.MSS = binary.BigEndian.Uint16(value)
		case kind == optionScale && len(value) == 1:
			s.Options |= flow.HasScale
			s.Scale = min(value[0], 14) // RFC 7323, 2.3
		case kind == optionSACKPermitted && len(value) == 0:
			s.Options |= flow.HasSACKPermitted
		case kind == optionTimestamps && len(value) == 8:
			s.Options |= flow.HasTimestamps
			s.TSVal = binary.BigEndian.Uint32(value)
			s.TSEcr = binary.BigEndian.Uint32(value[4:])
		case kind == optionSACK:
			for ; len(value) >= 8 && int(s.SACKs) < len(s.SACK); value = value[8:] {
				s.SACK[s.SACKs] = [2]uint32{binary.BigEndian.Uint32(value), binary.BigEndian.Uint32(value[4:])}
				s.SACKs++
			}
		}
		o = o[o[1]:]
	}
}
