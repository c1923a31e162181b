package diagnose

import (
	"bytes"
	"context"
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/capture"
	"github.com/fullpipe-net/fullpipe/internal/testenv"
	"github.com/fullpipe-net/fullpipe/internal/testenv/must"
)

// ethernet takes cooked packets to Ethernet with microseconds, for old tools.
func ethernet(packets []packet) []byte {
	le := binary.LittleEndian
	out := le.AppendUint32(nil, 0xa1b2c3d4)
	out = le.AppendUint16(le.AppendUint16(out, 2), 4)
	out = le.AppendUint32(le.AppendUint64(out, 0), 262144)
	out = le.AppendUint32(out, 1)
	for _, p := range packets {
		frame := append(make([]byte, 12), p.data[0], p.data[1])
		frame = append(frame, p.data[20:]...)
		out = le.AppendUint32(le.AppendUint32(out, uint32(p.at/1e9)), uint32(p.at%1e9/1000))
		out = le.AppendUint32(le.AppendUint32(out, uint32(len(frame))), uint32(p.length-6))
		out = append(out, frame...)
	}
	return out
}

var tcptraceLine = regexp.MustCompile(
	`(?m)^ *(actual data pkts|unique bytes sent|rexmt data pkts): +(\d+)(?: bytes)? +[a-z ]+: +(\d+)`)

// TestTimelinesAgainstTcptrace compares the counts of the larger direction with those of another program, on captures
// at the sender. Further on it calls a segment out of order that was lost before the tap and retransmitted, where the
// timeline sees a repair.
func TestTimelinesAgainstTcptrace(t *testing.T) {
	program := testenv.Program(t, testenv.TCPTrace)
	for _, c := range captured {
		if filepath.Ext(c.file) != ".near" {
			continue
		}
		t.Run(c.file, func(t *testing.T) {
			name := filepath.Join(t.TempDir(), "capture.pcap")
			data := ethernet(load(t, filepath.Join("testdata", c.file+".pcap.zst")))
			must.Do(t, os.WriteFile(name, data, 0o644))
			out := must.Get(exec.Command(program, "-n", "-l", name).Output())(t)
			f := must.Get(capture.NewFile("", bytes.NewReader(data)))(t)
			defer f.Close()
			a := must.Get(capture.Analyze(context.Background(), capture.Config{}, f))(t)
			d := a.Connections[0].Directions()[0]
			got := map[string]int64{"actual data pkts": d.Segments + d.Probes, "unique bytes sent": d.Bytes,
				"rexmt data pkts": d.Retransmitted}
			for _, m := range tcptraceLine.FindAllStringSubmatch(string(out), -1) {
				want, _ := strconv.ParseInt(m[2], 10, 64)
				if ours, ok := got[m[1]]; ok && ours != want {
					t.Errorf("%s: %d, tcptrace counts %d", m[1], ours, want)
				}
				delete(got, m[1])
			}
			if len(got) > 0 {
				t.Errorf("tcptrace's report was not understood: %s", out)
			}
		})
	}
}
