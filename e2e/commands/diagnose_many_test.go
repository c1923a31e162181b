//go:build linux

package commands

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/fullpipe-net/fullpipe/e2e/harness"
)

// TestDiagnose_ManyConnectionsTakeBoundedMemory diagnoses more connections than are followed at a time, of
// a few packets each, and a hundred that carry more: those are found, whenever they began, in 512 MB.
func TestDiagnose_ManyConnectionsTakeBoundedMemory(t *testing.T) {
	t.Parallel()
	const connections, heavyEvery = 100_000, 1000
	out := diagnoseMany(t, connections, heavyEvery, "--json")
	var doc struct {
		Seen        int `json:"connections_seen"`
		Followed    int `json:"connections_followed"`
		Connections []struct{ Directions []struct{ Bytes int } }
	}
	if err := json.Unmarshal(out, &doc); err != nil {
		t.Fatal(err)
	}
	heavy := 0
	for _, c := range doc.Connections {
		if c.Directions[0].Bytes >= heavyBytes {
			heavy++
		}
	}
	if doc.Seen != connections || doc.Followed <= len(doc.Connections) || doc.Followed > connections ||
		heavy != connections/heavyEvery {
		t.Errorf("%d seen, %d followed, %d judged, %d of them heavy", doc.Seen, doc.Followed, len(doc.Connections), heavy)
	}
}

// TestDiagnose_PageOfManyConnections checks that the page first gives the number of connections, and has graphs of
// heavy ones.
func TestDiagnose_PageOfManyConnections(t *testing.T) {
	t.Parallel()
	page := string(diagnoseMany(t, 100_000, 1000, "--html", "-"))
	header, rest, _ := strings.Cut(page, "<table")
	if !strings.Contains(header, "100,000 connections were seen") {
		t.Errorf("the page begins with %.3000s", header)
	}
	if graphs := strings.Count(rest, "<section"); graphs < 16 || graphs > 256 {
		t.Errorf("%d connections have graphs", graphs)
	}
}

// diagnoseMany diagnoses connections from standard input and checks the memory that this takes.
func diagnoseMany(t *testing.T, connections, heavyEvery int, flags ...string) []byte {
	t.Helper()
	const limit = 512e6
	cmd := exec.Command(harness.Program(t), append([]string{"diagnose", "-", "--bytes", "1"}, flags...)...)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	cmd.Stdout = &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(writeShort(in, connections, heavyEvery), in.Close(), cmd.Wait()); err != nil {
		t.Fatal(err)
	}
	if most := float64(cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss) * 1024; most > limit {
		t.Errorf("%.0f MB", most/1e6)
	}
	return out.Bytes()
}

// heavyBytes is what a heavy connection of writeShort carries.
const heavyBytes = 10 * 1400

// writeShort writes connections one after the other, each of six packets with 300 bytes each way. One in
// heavyEvery carries heavyBytes instead.
func writeShort(out io.Writer, connections, heavyEvery int) error {
	w, le, be := bufio.NewWriterSize(out, 1<<20), binary.LittleEndian, binary.BigEndian
	const pcap, version, ethernet = 0xa1b2c3d4, 4<<16 | 2, 1
	for _, field := range []uint32{pcap, version, 0, 0, 96, ethernet} {
		w.Write(le.AppendUint32(nil, field))
	}
	frame := make([]byte, 16+14+20+20)
	d, packets := frame[16:], 0
	d[12], d[14], d[22], d[23], d[46] = 8, 0x45, 64, 6, 0x50
	be.PutUint16(d[48:], 0xffff)
	put := func(i int, client bool, seq, ack uint32, flags byte, payload int) {
		le.PutUint32(frame, 1_700_000_000+uint32(packets/1e5))
		le.PutUint32(frame[4:], uint32(packets%1e5*10))
		le.PutUint32(frame[8:], uint32(len(d)))
		le.PutUint32(frame[12:], uint32(len(d)+payload))
		be.PutUint16(d[16:], uint16(40+payload))
		at, ports := [2]int{26, 30}, [2]int{34, 36}
		if !client {
			at, ports = [2]int{30, 26}, [2]int{36, 34}
		}
		be.PutUint32(d[at[0]:], 0x0a000000+uint32(i/50_000))
		be.PutUint32(d[at[1]:], 0xc0000201)
		be.PutUint16(d[ports[0]:], uint16(10_000+i%50_000))
		be.PutUint16(d[ports[1]:], 443)
		be.PutUint32(d[38:], seq)
		be.PutUint32(d[42:], ack)
		d[47] = flags
		w.Write(frame)
		packets++
	}
	const fin, syn, push, ack = 1, 2, 8, 16
	for i := range connections {
		put(i, true, 99, 0, syn, 0)
		put(i, false, 899, 100, syn|ack, 0)
		size, times := 300, 1
		if i%heavyEvery == heavyEvery/2 {
			size, times = 1400, heavyBytes/1400
		}
		for n := range times {
			put(i, true, uint32(100+n*size), uint32(900+n*size), push|ack, size)
			put(i, false, uint32(900+n*size), uint32(100+(n+1)*size), push|ack, size)
		}
		end := uint32(times * size)
		put(i, true, 100+end, 900+end, fin|ack, 0)
		put(i, false, 900+end, 101+end, fin|ack, 0)
	}
	return w.Flush()
}
