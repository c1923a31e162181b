package capture

import (
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
