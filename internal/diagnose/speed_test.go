package diagnose

import (
	"bytes"
	"context"
	"path/filepath"
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/capture"
	"github.com/fullpipe-net/fullpipe/internal/record"
)

// BenchmarkDiagnose judges the recordings of testdata as if many hosts had done the same at
// once. `make profile` takes the compiler's profile of it.
func BenchmarkDiagnose(b *testing.B) {
	files, err := filepath.Glob("testdata/*.pcap.zst")
	if err != nil || len(files) == 0 {
		b.Fatal("no recordings", err)
	}
	var captures [][]byte
	for _, file := range files {
		captures = append(captures, save(byManyHosts(load(b, file), 32)))
	}
	var packets int64
	for b.Loop() {
		for i, data := range captures {
			f, err := capture.NewFile(files[i], bytes.NewReader(data))
			if err != nil {
				b.Fatal(err)
			}
			a, err := capture.Analyze(context.Background(), capture.Config{}, f)
			if err != nil {
				b.Fatal(err)
			}
			if _, err := record.Encode(New(a, 1).Record); err != nil {
				b.Fatal(err)
			}
			packets += a.Packets
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(packets), "ns/packet")
}

// byManyHosts repeats every packet with other addresses of the first one's sender.
func byManyHosts(all []packet, hosts int) (out []packet) {
	host := all[0].seg.Src.AddrPort().Addr().AsSlice()
	for _, p := range all {
		for n := range hosts {
			one := p
			if at := bytes.Index(p.data, host); at >= 0 {
				one.data = bytes.Clone(p.data)
				one.data[at+1] += byte(n)
			}
			out = append(out, one)
		}
	}
	return out
}
