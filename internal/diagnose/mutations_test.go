package diagnose

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"io"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/capture"
	"github.com/fullpipe-net/fullpipe/internal/flow"
	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/testenv/must"
)

// packet is one packet of a capture that a test may change.
type packet struct {
	at     int64
	data   []byte
	length int
	link   capture.LinkType
	seg    flow.Segment
}

// load reads the packets of a capture that hold TCP.
// loaded has the packets of captures by file name: unpacking one takes longer than judging it.
var loaded sync.Map

// load returns a capture's packets, which the caller may change.
func load(t testing.TB, name string) []packet {
	t.Helper()
	kept, ok := loaded.Load(name)
	if !ok {
		kept, _ = loaded.LoadOrStore(name, unpack(t, name))
	}
	all := slices.Clone(kept.([]packet))
	for i := range all {
		all[i].data = bytes.Clone(all[i].data)
	}
	return all
}

func unpack(t testing.TB, name string) []packet {
	t.Helper()
	f := must.Get(capture.Open(name))(t)
	defer f.Close()
	var all []packet
	var p capture.Packet
	for {
		err := f.Next(&p)
		if err == io.EOF {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		one := packet{at: p.At, data: bytes.Clone(p.Data), length: p.Length, link: p.Link}
		if capture.Decode(&p, &one.seg) == capture.TCP {
			all = append(all, one)
		}
	}
}

// save writes packets as a capture in nanoseconds.
func save(packets []packet) []byte {
	le := binary.LittleEndian
	out := le.AppendUint32(nil, 0xa1b23c4d)
	out = le.AppendUint16(le.AppendUint16(out, 2), 4)
	out = le.AppendUint32(le.AppendUint64(out, 0), 262144)
	out = le.AppendUint32(out, uint32(packets[0].link))
	for _, p := range packets {
		out = le.AppendUint32(le.AppendUint32(out, uint32(p.at/1e9)), uint32(p.at%1e9))
		out = le.AppendUint32(le.AppendUint32(out, uint32(len(p.data))), uint32(p.length))
		out = append(out, p.data...)
	}
	return out
}

// judged diagnoses packets and returns the direction that carried most.
func judged(t testing.TB, packets []packet) *record.CapturedDirection {
	t.Helper()
	f := must.Get(capture.NewFile("test", bytes.NewReader(save(packets))))(t)
	defer f.Close()
	a := must.Get(capture.Analyze(context.Background(), capture.Config{Workers: 1}, f))(t)
	var most *record.CapturedDirection
	doc := New(a, 1).Record
	for i := range doc.Connections {
		for j := range doc.Connections[i].Directions {
			if d := &doc.Connections[i].Directions[j]; most == nil || d.Bytes > most.Bytes {
				most = d
			}
		}
	}
	return most
}

// mutations are what happens to captures before somebody asks about them.
var mutations = []struct {
	name string
	of   func([]packet) []packet
}{
	{"no handshake", func(all []packet) []packet {
		return slices.DeleteFunc(all, func(p packet) bool { return p.seg.Flags&flow.SYN != 0 })
	}},
	{"snaplen 80", func(all []packet) []packet { // on cooked packets; the options of a SYN are cut
		for i := range all {
			all[i].data = all[i].data[:min(len(all[i].data), 80)]
		}
		return all
	}},
	{"snaplen 64", func(all []packet) []packet { // hardly any option is left
		for i := range all {
			all[i].data = all[i].data[:min(len(all[i].data), 64)]
		}
		return all
	}},
	{"VLAN", func(all []packet) []packet {
		for i := range all {
			inside, header := all[i].data[20:], []byte{2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x81, 0, 0, 7}
			all[i].data = slices.Concat(header, all[i].data[:2], inside)
			all[i].length += len(header) + 2 - 20
			all[i].link = 1
		}
		return all
	}},
	{"1 % missing", func(all []packet) []packet {
		r := rand.New(rand.NewPCG(1, 2))
		return slices.DeleteFunc(all, func(packet) bool { return r.Float64() < 0.01 })
	}},
	{"10 ms clock", func(all []packet) []packet {
		for i := range all {
			all[i].at -= all[i].at % 10e6
		}
		return all
	}},
	{"VXLAN", func(all []packet) []packet {
		for i := range all {
			all[i].data, all[i].length = tunnelled(all[i])
			all[i].link = 1
		}
		return all
	}},
	{"in the middle", inTheMiddle},
	{"records out of order", func(all []packet) []packet { // four queues, each written up to 4 ms late
		r := rand.New(rand.NewPCG(3, 4))
		written := map[int]int64{}
		for i := range all {
			written[i] = all[i].at + r.Int64N(4e6)
		}
		order := make([]int, len(all))
		for i := range order {
			order[i] = i
		}
		slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(written[a], written[b]) })
		out := make([]packet, len(all))
		for i, from := range order {
			out[i] = all[from]
		}
		return out
	}},
	{"a clock set back by 15 ms", clockSet(-15e6)},
	{"a clock set back by an hour", clockSet(-3600e9)},
}

// clockSet sets the clock in the middle of a capture.
func clockSet(by int64) func([]packet) []packet {
	return func(all []packet) []packet {
		for i := range all[len(all)/2:] {
			all[len(all)/2+i].at += by
		}
		return all
	}
}

// tunnelled puts a cooked packet's inside into VXLAN over IPv4 over Ethernet.
func tunnelled(p packet) ([]byte, int) {
	inner := p.data[20:] // Linux cooked 2
	innerLength := p.length - 20
	be := binary.BigEndian
	out := make([]byte, 14, 14+20+8+8+14+len(inner))
	out[12] = 8
	out = append(out, 0x45, 0)
	out = be.AppendUint16(out, uint16(min(20+8+8+14+innerLength, 0xffff)))
	out = append(out, 0, 0, 0, 0, 64, 17, 0, 0, 192, 0, 2, 1, 192, 0, 2, 2)
	out = be.AppendUint16(be.AppendUint16(out, 40000), 4789)
	out = be.AppendUint16(be.AppendUint16(out, uint16(min(8+8+14+innerLength, 0xffff))), 0)
	out = append(out, 8, 0, 0, 0, 0, 0, 1, 0)
	out = append(out, make([]byte, 12)...)
	out = append(out, p.data[0], p.data[1])
	return append(out, inner...), 14 + 20 + 8 + 8 + 14 + innerLength
}

// inTheMiddle moves the tap a fixed way along the path: it sees the segments of the client a quarter of the round
// trip later, and those to it as much earlier.
func inTheMiddle(all []packet) []packet {
	var syn, synAck int64
	var client flow.Endpoint
	for _, p := range all {
		switch {
		case p.seg.Flags&(flow.SYN|flow.ACK) == flow.SYN && syn == 0:
			syn, client = p.at, p.seg.Src
		case p.seg.Flags&flow.SYN != 0 && synAck == 0:
			synAck = p.at
		}
	}
	quarter := (synAck - syn) / 4
	for i := range all {
		if all[i].seg.Src.Lo == client.Lo {
			all[i].at += quarter
		} else {
			all[i].at -= quarter
		}
	}
	slices.SortStableFunc(all, func(a, b packet) int { return int(min(max(a.at-b.at, -1), 1)) })
	return all
}
