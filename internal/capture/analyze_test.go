package capture

import (
	"bytes"
	"context"
	"os"
	"testing"
)

// BenchmarkAnalyze reads the capture named in FULLPIPE_CAPTURE.
func BenchmarkAnalyze(b *testing.B) {
	name := os.Getenv("FULLPIPE_CAPTURE")
	if name == "" {
		b.Skip("FULLPIPE_CAPTURE names no capture")
	}
	var packets int64
	for b.Loop() {
		f, err := Open(name)
		if err != nil {
			b.Fatal(err)
		}
		a, err := Analyze(context.Background(), Config{}, f)
		if err != nil {
			b.Fatal(err)
		}
		f.Close()
		packets += a.Packets
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(packets), "ns/packet")
}

func TestPartsInAnyOrder(t *testing.T) {
	packets := make([][]byte, 30)
	for i := range packets {
		packets[i] = ether(typeIPv4, ip4(protoTCP, "10.0.0.1", "10.0.0.2", segment(5201, 40000, 1000+uint32(i)*100, 2000,
			100)))
	}
	whole := pcapFile(linkEthernet, packets...)
	record := recordHeader + len(packets[0])
	part := func(from, to int) *File {
		data := append(bytes.Clone(whole[:fileHeader]), whole[fileHeader+from*record:fileHeader+to*record]...)
		f, err := NewFile("part", bytes.NewReader(data))
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	for _, workers := range []int{1, 3} {
		a, err := Analyze(context.Background(), Config{Workers: workers}, part(20, 30), part(0, 10), part(10, 20))
		if err != nil {
			t.Fatal(err)
		}
		if len(a.Connections) != 1 || a.Packets != 30 {
			t.Fatalf("%d connections, %d packets", len(a.Connections), a.Packets)
		}
		if d := a.Connections[0].Directions()[0]; d.Bytes != 3000 || d.Retransmitted != 0 || d.Unseen != 0 {
			t.Errorf("%d bytes, %d retransmitted, %d unseen", d.Bytes, d.Retransmitted, d.Unseen)
		}
	}
}

// TestPacketsAreNotAllocatedFor holds that ten times the packets of one connection take
// no more allocations but for its growing timeline.
func TestPacketsAreNotAllocatedFor(t *testing.T) {
	allocations := func(packets int) float64 {
		all := make([][]byte, packets)
		for i := range all {
			all[i] = ether(typeIPv4, ip4(protoTCP, "10.0.0.1", "10.0.0.2", segment(5201, 40000, 1000+uint32(i)*100, 2000,
				100)))[:66]
		}
		data := pcapFile(linkEthernet, all...)
		return testing.AllocsPerRun(1, func() {
			f, err := NewFile("", bytes.NewReader(data))
			if err != nil {
				t.Fatal(err)
			}
			if a, err := Analyze(context.Background(), Config{Workers: 2}, f); err != nil || a.Segments != int64(packets) {
				t.Fatal(a, err)
			}
		})
	}
	few, many := allocations(3000), allocations(30000)
	if many > few+100 {
		t.Errorf("%.0f allocations for 3000 packets, %.0f for 30000", few, many)
	}
}
