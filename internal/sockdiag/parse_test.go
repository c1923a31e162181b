package sockdiag

import (
	"bytes"
	"errors"
	"net/netip"
	"syscall"
	"testing"
)

// message is one netlink message.
func message(kind uint16, body []byte) []byte {
	b := ne.AppendUint32(nil, uint32(headerSize+len(body)))
	b = ne.AppendUint16(b, kind)
	b = ne.AppendUint16(b, 0)
	b = ne.AppendUint64(b, 0)
	b = append(b, body...)
	return append(b, make([]byte, align4(len(b))-len(b))...)
}

func attribute(kind uint16, value []byte) []byte {
	b := ne.AppendUint16(nil, uint16(4+len(value)))
	b = append(ne.AppendUint16(b, kind), value...)
	return append(b, make([]byte, align4(len(b))-len(b))...)
}

// socketMessage returns the message of one IPv4 socket with these attributes.
func socketMessage(attributes ...[]byte) []byte {
	b := make([]byte, messageSize)
	b[0], b[1], b[2], b[3] = familyIPv4, byte(CloseWait), 4, 3
	be.PutUint16(b[4:], 443)
	be.PutUint16(b[6:], 50000)
	copy(b[8:], []byte{192, 0, 2, 1})
	copy(b[24:], []byte{198, 51, 100, 9})
	ne.PutUint32(b[44:], 0x11223344)
	ne.PutUint32(b[48:], 0x55667788)
	for i, v := range []uint32{1500, 7, 8, 1000, 4242} {
		ne.PutUint32(b[52+4*i:], v)
	}
	return message(typeByFamily, append(b, bytes.Join(attributes, nil)...))
}

func TestParse(t *testing.T) {
	memory := make([]byte, 36)
	for i := range 9 {
		ne.PutUint32(memory[4*i:], uint32(100+i))
	}
	b := socketMessage(attribute(attrInfo, bytes.Repeat([]byte{7}, 168)), attribute(attrCongestion, []byte("bbr\x00")),
		attribute(attrMemory, memory),
		attribute(attrCgroup, ne.AppendUint64(nil, 77)),
		attribute(999, []byte("of a later kernel")))
	b = append(b, message(typeError, ne.AppendUint32(nil, uint32(0xfffffffe)))...) // −2, ENOENT
	b = append(b, message(typeDone, make([]byte, 4))...)
	var one Socket
	var got *Socket
	var failure error
	done, err := messages(b, &one, func(s *Socket) { got = s.Clone() }, func(err error) { failure = err })
	if !done || err != nil || failure == nil || failure.Error() == "" {
		t.Errorf("done %v, %v; failure %v", done, err, failure)
	}
	if got.State != CloseWait || got.Cookie != 0x5566778811223344 ||
		got.ID().Cookie() != got.Cookie ||
		got.Local != netip.MustParseAddrPort("192.0.2.1:443") ||
		got.Remote != netip.MustParseAddrPort("198.51.100.9:50000") ||
		got.ReadQueue != 7 || got.WriteQueue != 8 || got.UID != 1000 ||
		got.Inode != 4242 {
		t.Errorf("%+v", got)
	}
	if len(got.Info) != 168 || string(got.Congestion) != "bbr" || got.Cgroup != 77 ||
		got.Memory.ReceiveBuffer != 101 ||
		got.Memory.SendBuffer != 103 || got.Memory.SendQueued != 105 {
		t.Errorf("%+v", got)
	}
}

func TestBrokenMessagesAreErrors(t *testing.T) {
	good := socketMessage(attribute(attrInfo, make([]byte, 100)))
	longer := bytes.Clone(good)
	ne.PutUint32(longer, uint32(len(good)+4))
	attributeTooLong := bytes.Clone(good)
	ne.PutUint16(attributeTooLong[headerSize+messageSize:], 2000)
	for name, b := range map[string][]byte{
		"a length beyond the datagram": longer, "a length below the header": make([]byte, 20),
		"a short message": message(typeByFamily, make([]byte, 71)), "an attribute beyond its message": attributeTooLong,
		"an error without a number": message(typeError, []byte{1}),
	} {
		var one Socket
		if _, err := messages(b, &one, func(*Socket) {}, func(error) {}); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// TestDumpThatFails: the message that ends a dump says whether it was a whole one.
func TestDumpThatFails(t *testing.T) {
	for errno, want := range map[int32]error{0: nil, -2: syscall.ENOENT} {
		var one Socket
		var failure error
		done, err := messages(message(typeDone, ne.AppendUint32(nil, uint32(errno))), &one, func(*Socket) {},
			func(err error) { failure = err })
		if !done || err != nil || !errors.Is(failure, want) {
			t.Errorf("%d: %v, %v, %v", errno, done, err, failure)
		}
	}
}

func FuzzMessages(f *testing.F) {
	f.Add(socketMessage(attribute(attrInfo, make([]byte, 280)), attribute(attrMemory, make([]byte, 36))))
	f.Add(append(socketMessage(attribute(attrCongestion, []byte("cubic"))), message(typeDone, nil)...))
	f.Add(message(typeError, []byte{1, 2, 3, 4}))
	f.Fuzz(func(t *testing.T, b []byte) {
		var one Socket
		messages(b, &one, func(s *Socket) {
			if len(s.Info) > len(b) || len(s.Congestion) > len(b) {
				t.Error("more than there was")
			}
			s.Clone()
		}, func(error) {})
	})
}
