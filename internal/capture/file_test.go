package capture

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/fullpipe-net/fullpipe/internal/flow"
	"github.com/fullpipe-net/fullpipe/internal/testenv/must"
)

var frame = ether(typeIPv4, ip4(protoTCP, "10.0.0.1", "10.0.0.2", segment(5201, 40000, 1000, 2000, 10)))

func readAll(data []byte) (times []int64, err error) {
	f, err := NewFile("test", bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var p Packet
	for {
		if err := f.Next(&p); err != nil {
			return times, err
		}
		times = append(times, p.At)
	}
}

// swapped is a capture as a big-endian host writes it, in nanoseconds.
func swapped() []byte {
	out := be(uint32(magicNano), uint16(2), uint16(4), make([]byte, 8), uint32(65535), uint32(linkEthernet))
	return be(out, uint32(1_700_000_000), uint32(5), uint32(len(frame)), uint32(len(frame)+1000), frame)
}

func TestFormats(t *testing.T) {
	const second = int64(1_700_000_000e9)
	resolution := func(order binary.AppendByteOrder, v byte) []byte {
		return append(order.AppendUint16(order.AppendUint16(nil, optionResolution), 1), v, 0, 0, 0)
	}
	offset := func(order binary.AppendByteOrder, sec uint64) []byte {
		return order.AppendUint64(order.AppendUint16(order.AppendUint16(nil, optionOffset), 8), sec)
	}
	ng := func(order binary.AppendByteOrder) []byte {
		return bytes.Join([][]byte{
			section(order),
			description(order, linkEthernet, nil),
			description(order, linkRaw, resolution(order, 9)),
			block(order, 5, make([]byte, 8)),
			enhanced(order, 0, uint64(second/1000), len(frame), frame),
			enhanced(order, 1, uint64(second)+7, 5000, frame[14:]),
			section(order),
			description(order, linkEthernet, append(resolution(order, 0x80|10), offset(order, 1_700_000_000)...)),
			enhanced(order, 0, 512, len(frame), frame),
		}, nil)
	}
	var zipped, zstandard bytes.Buffer
	z := gzip.NewWriter(&zipped)
	z.Write(pcapFile(linkEthernet, frame, frame))
	z.Close()
	s, _ := zstd.NewWriter(&zstandard)
	s.Write(pcapFile(linkEthernet, frame, frame))
	s.Close()
	bzipped := must.Get(base64.StdEncoding.DecodeString(bzipCapture))(t)
	tests := map[string]struct {
		data []byte
		want []int64
	}{
		"bzip2":                {bzipped, []int64{second, second + 1e6}},
		"snoop":                {snoopFile(frame, frame), []int64{second, second + 1e6}},
		"erf":                  {erfFile(frame, frame), []int64{second, second + 1e6}},
		"pcap":                 {pcapFile(linkEthernet, frame, frame), []int64{second, second + 1e6}},
		"pcap, big endian, ns": {swapped(), []int64{second + 5}},
		"gzip":                 {zipped.Bytes(), []int64{second, second + 1e6}},
		"zstd":                 {zstandard.Bytes(), []int64{second, second + 1e6}},
		"pcapng":               {ng(binary.LittleEndian), []int64{second, second + 7, second + 5e8}},
		"pcapng, big endian":   {ng(binary.BigEndian), []int64{second, second + 7, second + 5e8}},
		"no packets":           {pcapFile(linkEthernet), nil},
		"pcapng, both byte orders": {append(ng(binary.LittleEndian), ng(binary.BigEndian)...), []int64{second, second + 7,
			second + 5e8, second, second + 7, second + 5e8}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := readAll(test.data)
			if !errors.Is(err, io.EOF) {
				t.Fatal(err)
			}
			if len(got) != len(test.want) {
				t.Fatalf("%d packets, want %d", len(got), len(test.want))
			}
			for i := range got {
				if got[i] != test.want[i] {
					t.Errorf("packet %d at %d, want %d", i, got[i], test.want[i])
				}
			}
		})
	}
}

func TestDamageSaysWhereAndWhy(t *testing.T) {
	whole := pcapFile(linkEthernet, frame, frame)
	size := recordHeader + len(frame)
	lying := bytes.Clone(whole)
	binary.LittleEndian.PutUint32(lying[fileHeader+size+8:], 0xfffffff0)
	order := binary.LittleEndian
	ng := append(section(order), description(order, linkEthernet, nil)...)
	tests := map[string]struct {
		data    []byte
		packets int
		offset  int64
		why     string
	}{
		"cut in a packet":    {whole[:len(whole)-3], 1, int64(fileHeader + size), "is cut after"},
		"cut in a header":    {whole[:fileHeader+size+9], 1, int64(fileHeader + size), "header is cut after 9 bytes"},
		"a length that lies": {lying, 1, int64(fileHeader + size), "claims 4294967280 captured bytes"},
		"a block that lies": {append(bytes.Clone(ng), 6, 0, 0, 0, 0xfc, 0xff, 0xff, 0xff), 0, int64(len(ng)),
			"claims 4294967292 bytes"},
		"an unknown block, cut": {append(bytes.Clone(ng), 99, 0, 0, 0, 0xfc, 0xff, 0xff, 0x7f), 0, int64(len(ng)) + 8,
			"is cut"},
		"no such interface": {append(bytes.Clone(ng), enhanced(order, 3, 0, 10, frame)...), 0, int64(len(ng)),
			"interface that the section does not describe"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := readAll(test.data)
			var damage *Damage
			if !errors.As(err, &damage) {
				t.Fatalf("error %v, want a Damage", err)
			}
			if len(got) != test.packets || damage.Offset != test.offset || !strings.Contains(damage.Why, test.why) {
				t.Errorf("%d packets, then %v", len(got), damage)
			}
		})
	}
	for _, data := range []string{"", "abc", "all: file.o\n\tcc -o all file.o\n# a comment that is long enough for a " +
		"header\n", "GET / HTTP/1.1\r\n\r\n", "\x1f\x8b\x08", "\xd4\xc3\xb2\xa1\x02\x00"} {
		var not *NotACapture
		if _, err := readAll([]byte(data)); !errors.As(err, &not) {
			t.Errorf("%q: %v", data, err)
		}
	}
}

// A packed file that is cut says so; the capture within may seem whole until there.
func TestCutPackedFiles(t *testing.T) {
	var all [][]byte
	r := rand.New(rand.NewPCG(1, 1))
	for range 400 {
		f := bytes.Clone(frame)
		for i := range 10 {
			f[len(f)-1-i] = byte(r.Uint32())
		}
		all = append(all, f)
	}
	whole := pcapFile(linkEthernet, all...)
	for kind, pack := range map[string]func(io.Writer) io.WriteCloser{
		"zstd": func(w io.Writer) io.WriteCloser { z, _ := zstd.NewWriter(w); return z },
		"gzip": func(w io.Writer) io.WriteCloser { return gzip.NewWriter(w) },
	} {
		var packed bytes.Buffer
		z := pack(&packed)
		z.Write(whole)
		z.Close()
		for _, keep := range []int{packed.Len() / 2, packed.Len() - 6} {
			_, err := readAll(packed.Bytes()[:keep])
			if err == nil || errors.Is(err, io.EOF) || !strings.Contains(err.Error(), kind+" file itself is cut") {
				t.Errorf("%s, %d of %d bytes: %v", kind, keep, packed.Len(), err)
			}
		}
	}
}

func TestForeignFormatsAreNamed(t *testing.T) {
	for begin, says := range map[string][2]string{
		"\xfd7zXZ\x00\x00\x04\xe6\xd6":                      {"xz", "xz -dc x.cap | fullpipe diagnose -"},
		"\x04\x22\x4d\x18\x64\x40\xa7":                      {"lz4", "lz4 -dc x.cap"},
		"\x7fver\x00\x00\x00\x07":                           {"OmniPeek", "editcap -F pcap x.cap x.cap.pcap"},
		"\x07\x00\x00\x00\x10\x00":                          {"EtherPeek", "editcap"},
		"GMBU\x00\x02":                                      {"Network Monitor", "editcap"},
		"snoop\x00\x00\x00\x00\x00\x00\x02\x00\x00\x00\x63": {"datalink type 99", "editcap"},
	} {
		_, err := NewFile("x.cap", strings.NewReader(begin))
		var not *NotACapture
		if !errors.As(err, &not) || !strings.Contains(not.Why, says[0]) || !strings.Contains(not.Try(), says[1]) {
			t.Errorf("%q: %v", begin, err)
		}
	}
}

func TestUnknownLinkTypesAreNumbered(t *testing.T) {
	f := must.Get(NewFile("test", bytes.NewReader(pcapFile(147, frame, frame))))(t)
	defer f.Close()
	a, err := Analyze(t.Context(), Config{}, f)
	if err != nil || len(a.UnknownLinks) != 1 || a.UnknownLinks[147] != 2 {
		t.Errorf("%v, %v", a.UnknownLinks, err)
	}
}

func FuzzFile(f *testing.F) {
	order := binary.LittleEndian
	f.Add(snoopFile(frame, frame))
	f.Add(erfFile(frame, frame))
	f.Add(pcapFile(linkEthernet, frame, frame))
	f.Add(swapped())
	f.Add(bytes.Join([][]byte{section(order), description(order, linkEthernet, nil), enhanced(order, 0, 1, len(frame),
		frame)}, nil))
	f.Fuzz(func(t *testing.T, data []byte) {
		in, err := NewFile("fuzz", bytes.NewReader(data))
		if err != nil {
			return
		}
		defer in.Close()
		var p Packet
		var s flow.Segment
		n := 0
		for ; ; n++ {
			if err := in.Next(&p); err != nil {
				if in.Next(&p) != err {
					t.Fatal("the end is not the end")
				}
				break
			}
			if len(p.Data) > p.Length {
				t.Fatalf("%d bytes captured of %d", len(p.Data), p.Length)
			}
			Decode(&p, &s)
			if n > len(data) {
				t.Fatal("more packets than bytes")
			}
		}
		again := must.Get(NewFile("fuzz", bytes.NewReader(data)))(t)
		defer again.Close()
		if a, _ := Analyze(context.Background(), Config{Workers: 1}, again); a.Packets != int64(n) {
			t.Fatalf("%d packets one by one, %d at once", n, a.Packets)
		}
		if len(in.in.buf) > sourceSize+64 {
			t.Fatalf("a buffer of %d bytes for a file of %d", len(in.in.buf), len(data))
		}
	})
}

// BenchmarkWalk reads and decodes a capture that is in memory: plain packets where they
// lie, and one packet after the other.
func BenchmarkWalk(b *testing.B) {
	packets := make([][]byte, 20000)
	for i := range packets {
		packets[i] = frame[:66]
	}
	data := pcapFile(linkEthernet, packets...)
	buf := make([]byte, sourceSize)
	for name, next := range map[string]func(*File, []flow.Segment) int{
		"plain": func(f *File, s []flow.Segment) int { return f.plain(s) },
		"each":  func(*File, []flow.Segment) int { return 0 },
	} {
		b.Run(name, func(b *testing.B) {
			var p Packet
			var segments [256]flow.Segment
			b.ReportAllocs()
			for b.Loop() {
				f := File{in: source{r: bytes.NewReader(data), buf: buf}}
				must.Do(b, f.begin())
				n := next(&f, segments[:])
				for f.Next(&p) == nil {
					if Decode(&p, &segments[0]) == TCP {
						n += 1 + next(&f, segments[:])
					}
				}
				if n != len(packets) {
					b.Fatal(n)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(packets)), "ns/packet")
		})
	}
}

// Counters count from the beginning, for each interface.
func TestFile_CountsDroppedPackets(t *testing.T) {
	order := binary.LittleEndian
	counted := func(index uint32, dropped, byOS uint64) []byte {
		body := order.AppendUint64(order.AppendUint32(nil, index), 0)
		for code, n := range map[uint16]uint64{optionDropped: dropped, optionOSDropped: byOS} {
			body = order.AppendUint64(order.AppendUint16(order.AppendUint16(body, code), 8), n)
		}
		return block(order, blockCounters, body)
	}
	data := bytes.Join([][]byte{
		section(order), description(order, linkEthernet, nil), description(order, linkEthernet, nil),
		enhanced(order, 0, 0, len(frame), frame),
		counted(0, 3, 1), counted(1, 2, 0), counted(0, 5, 2), counted(7, 100, 0),
		block(order, blockCounters, make([]byte, 4)),
	}, nil)
	f := must.Get(NewFile("test", bytes.NewReader(data)))(t)
	defer f.Close()
	a := must.Get(Analyze(t.Context(), Config{}, f))(t)
	if a.Lost != 9 || a.Packets != 1 {
		t.Errorf("%d lost of %d packets", a.Lost, a.Packets)
	}
}
