package diagnose

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/capture"
	"github.com/fullpipe-net/fullpipe/internal/flow"
	"github.com/fullpipe-net/fullpipe/internal/testenv/must"
)

// TestAllPathsAgree compares the fast ways through a capture with the plain one: packet after packet, segment after
// segment into one table. The last capture contains all others' packets.
func TestAllPathsAgree(t *testing.T) {
	names, err := filepath.Glob("testdata/*.pcap.zst")
	if err != nil || len(names) == 0 {
		t.Fatalf("%d captures: %v", len(names), err)
	}
	var together []packet
	captures := map[string][]packet{}
	for _, name := range names {
		captures[filepath.Base(name)] = load(t, name)
		together = append(together, load(t, name)...)
	}
	slices.SortStableFunc(together, func(a, b packet) int { return int(min(max(a.at-b.at, -1), 1)) })
	captures["together"] = together
	for name, packets := range captures {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cooked := save(packets)
			for link, data := range map[string][]byte{"cooked": cooked, "ethernet": ethernet(packets),
				"pcapng": nextGeneration(packets)} {
				want := documentOf(t, followed(t, data))
				for _, workers := range []int{1, 3} {
					f := must.Get(capture.NewFile("", bytes.NewReader(data)))(t)
					a, err := capture.Analyze(context.Background(), capture.Config{Workers: workers}, f)
					if err != nil {
						t.Fatal(err)
					}
					if got := documentOf(t, a); !bytes.Equal(got, want) {
						t.Errorf("%s, %d workers: %s\nwant %s", link, workers, got, want)
					}
				}
			}
		})
	}
}

// TestWorkersAgree reads captures out of order with any number of workers.
func TestWorkersAgree(t *testing.T) {
	for _, m := range mutations {
		if m.name != "records out of order" && !strings.HasPrefix(m.name, "a clock set") {
			continue
		}
		data := save(m.of(load(t, "testdata/policed.near.pcap.zst")))
		var one []byte
		for workers := 1; workers <= 3; workers++ {
			f := must.Get(capture.NewFile("", bytes.NewReader(data)))(t)
			a := must.Get(capture.Analyze(context.Background(), capture.Config{Workers: workers}, f))(t)
			if got := documentOf(t, a); one == nil {
				one = got
			} else if !bytes.Equal(got, one) {
				t.Errorf("%s, %d workers: %s\nwith one: %s", m.name, workers, got, one)
			}
		}
	}
}

// nextGeneration writes packets as a pcapng capture in nanoseconds.
func nextGeneration(packets []packet) []byte {
	le := binary.LittleEndian
	block := func(out []byte, kind uint32, body []byte) []byte {
		body = append(body, make([]byte, -len(body)&3)...)
		out = le.AppendUint32(le.AppendUint32(out, kind), uint32(len(body)+12))
		return le.AppendUint32(append(out, body...), uint32(len(body)+12))
	}
	out := block(nil, 0x0a0d0d0a, le.AppendUint64(le.AppendUint32(le.AppendUint32(nil, 0x1a2b3c4d), 1), ^uint64(0)))
	out = block(out, 1, append(le.AppendUint64(nil, uint64(packets[0].link)), 9, 0, 1, 0, 9, 0, 0, 0))
	for _, p := range packets {
		body := le.AppendUint32(le.AppendUint32(le.AppendUint32(nil, 0), uint32(p.at>>32)), uint32(p.at))
		body = le.AppendUint32(le.AppendUint32(body, uint32(len(p.data))), uint32(p.length))
		out = block(out, 6, append(body, p.data...))
	}
	return out
}

// followed reads a capture the plain way.
func followed(t *testing.T, data []byte) *capture.Analysis {
	t.Helper()
	f := must.Get(capture.NewFile("", bytes.NewReader(data)))(t)
	table := flow.NewTable(flow.Config{})
	var p capture.Packet
	for n := uint32(1); f.Next(&p) == nil; n++ {
		s := flow.Segment{Number: n}
		if k := capture.Decode(&p, &s); k == capture.TCP || k == capture.TooBig {
			table.Add(&s)
		}
	}
	all := table.Finish()
	if len(all) == 0 {
		t.Fatal("nothing to follow")
	}
	return &capture.Analysis{Connections: all, Files: []capture.FileSummary{{}}}
}

// documentOf is what diagnose would print of the connections.
func documentOf(t *testing.T, a *capture.Analysis) []byte {
	t.Helper()
	doc := must.Get(json.Marshal(New(a, 1).Record.Connections))(t)
	return doc
}
