package diagnose

import (
	"bytes"
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/capture"
	"github.com/fullpipe-net/fullpipe/internal/record"
)

// FuzzCapture reads any capture: there is a document of it that can be stored and read again, with shares that are
// some of the time.
func FuzzCapture(f *testing.F) {
	for _, name := range []string{"short.near", "policed.near", "nagle-ex.near", "mtu.near"} {
		packets := load(f, "testdata/"+name+".pcap.zst")
		f.Add(save(packets[:min(len(packets), 40)]), []byte(nil))
		f.Add(save(packets[:min(len(packets), 20)]), save(packets[min(5, len(packets)-1):min(len(packets), 20)]))
	}
	f.Fuzz(func(t *testing.T, first, second []byte) {
		var inputs []*capture.File
		for _, text := range [][]byte{first, second} {
			in, err := capture.NewFile("fuzz", bytes.NewReader(text))
			if err != nil {
				continue
			}
			defer in.Close()
			inputs = append(inputs, in)
		}
		if len(inputs) == 0 {
			return
		}
		a, _ := capture.Analyze(t.Context(), capture.Config{Workers: 1}, inputs...)
		d := New(a, 1)
		d.Record.Schema = "fullpipe/diagnose/v1"
		text, err := record.Encode(d.Record)
		if err != nil {
			t.Fatalf("it cannot be stored: %v", err)
		}
		if _, err := record.Decode(text, nil); err != nil {
			t.Errorf("it cannot be read again: %v", err)
		}
		for _, c := range d.Record.Connections {
			for _, direction := range c.Directions {
				sum := 0.0
				for _, share := range direction.Shares {
					sum += share
				}
				if !(sum >= 0 && sum < 1.001) {
					t.Errorf("shares of %v in all: %v", sum, direction.Shares)
				}
			}
		}
	})
}
