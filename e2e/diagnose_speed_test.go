//go:build linux

package e2e

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"
)

// TestBankDiagnoseSpeed compares packets a second with tcptrace's and tshark's on
// captures of headers, and how much memory that takes.
func TestBankDiagnoseSpeed(t *testing.T) {
	bankOnly(t)
	const packets, few = 2_500_000, 150_000
	for _, connections := range []int{1, 1000} {
		file := filepath.Join(t.TempDir(), "headers.pcap")
		writeHeaders(t, file, connections, packets)
		small := filepath.Join(t.TempDir(), "few.pcap")
		writeHeaders(t, small, connections, few)
		alone(t, func() {
			var one, two, tcptrace []float64
			var memory int64
			for range 5 {
				rate, peak := timed(t, packets, file, "1")
				one, memory = append(one, rate), max(memory, peak)
				tcptrace = append(tcptrace, other(t, packets, "tcptrace", "-n", "-l", "-r", file))
				rate, peak = timed(t, packets, file, "2")
				two, memory = append(two, rate), max(memory, peak)
			}
			theirs := median(tcptrace)
			what := fmt.Sprintf("%d connections, %.1f million packets of headers", connections, packets/1e6)
			row := func(name, claim string, got []float64, times float64) {
				record(t, bankRow{Section: "captures", Case: name + ", " + what, Claim: claim,
					Measured: fmt.Sprintf("%.1f million packets/s, %.1f × tcptrace (%.1f)", median(got)/1e6, median(got)/theirs, theirs/1e6),
					Spread:   fmt.Sprintf("%.1f to %.1f of %d", slices.Min(got)/1e6, slices.Max(got)/1e6, len(got)),
					Verdict:  map[bool]string{true: "pass", false: "fail"}[median(got) >= times*theirs],
					Command:  "FULLPIPE_BANK=1 go test ./e2e -run TestBankDiagnoseSpeed"})
			}
			row("one processor", "at least 5 × tcptrace", one, 5)
			if connections > 1 {
				row("two processors", "at least 8 × tcptrace on one", two, 8)
			}
			tshark := other(t, few, "tshark", "-r", small, "-q", "-z", "conv,tcp")
			record(t, bankRow{Section: "captures", Case: "beside tshark -z conv,tcp, " + what, Claim: "more than tshark",
				Measured: fmt.Sprintf("%.0f ×", median(one)/tshark), Spread: fmt.Sprintf("tshark %.3f million packets/s, once", tshark/1e6),
				Verdict: map[bool]string{true: "pass", false: "fail"}[median(one) > tshark], Command: "FULLPIPE_BANK=1 go test ./e2e -run TestBankDiagnoseSpeed"})
			record(t, bankRow{Section: "captures", Case: "memory, " + what, Claim: "below 200 MB", Measured: fmt.Sprintf("%.0f MB at the most", float64(memory)/1e6),
				Spread: "10 runs", Verdict: map[bool]string{true: "pass", false: "fail"}[memory < 200e6], Command: "FULLPIPE_BANK=1 go test ./e2e -run TestBankDiagnoseSpeed"})
		})
	}
}

// timed runs diagnose on so many processors; it answers packets a second, and the most
// memory in bytes. One processor is judged by the time that it ran, which other work on
// the machine does not change much; several by the clock on the wall.
func timed(t *testing.T, packets int, file, processors string) (float64, int64) {
	t.Helper()
	program, err := fullpipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, "diagnose", "--json", file)
	cmd.Env = append(os.Environ(), "GOMAXPROCS="+processors)
	start := time.Now()
	if out, err := cmd.Output(); err != nil || len(out) < 100 {
		t.Fatalf("diagnose: %v, %d bytes", err, len(out))
	}
	took := time.Since(start)
	if processors == "1" {
		took = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	}
	return float64(packets) / took.Seconds(), cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss * 1024
}

// other runs another program over a capture and answers packets a second of processor
// time.
func other(t *testing.T, packets int, args ...string) float64 {
	t.Helper()
	cmd := exec.Command(args[0], args[1:]...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v: %.300s", args, err, out)
	}
	return float64(packets) / (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds()
}

// writeHeaders writes bulk transfers over so many connections, interleaved: two segments
// for each acknowledgement, a retransmission every thousand.
func writeHeaders(t *testing.T, name string, connections, packets int) {
	t.Helper()
	file, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	w := bufio.NewWriterSize(file, 1<<20)
	le, be := binary.LittleEndian, binary.BigEndian
	head := le.AppendUint16(le.AppendUint16(le.AppendUint32(nil, 0xa1b2c3d4), 2), 4)
	w.Write(le.AppendUint32(le.AppendUint32(le.AppendUint64(head, 0), 96), 1))
	now, written := uint64(1_700_000_000_000_000), 0
	frame := make([]byte, 16+14+20+40)
	put := func(i int, back bool, seq, ack uint32, flags byte, payload int) {
		clear(frame)
		d, options := frame[16:], []byte{1, 1, 8, 10}
		if flags&2 != 0 {
			options = []byte{2, 4, 5, 0xb4, 1, 3, 3, 7, 1, 1, 8, 10}
		}
		header := 20 + len(options) + 8
		d[12], d[14], d[20], d[22], d[23] = 8, 0x45, 0x40, 64, 6
		be.PutUint16(d[16:], uint16(20+header+payload))
		be.PutUint16(d[18:], uint16(written))
		from, to := d[26:], d[30:]
		if back {
			from, to = to, from
		}
		be.PutUint32(from, 0x0a000001)
		be.PutUint32(to, 0x0a010000+uint32(i/50))
		source, destination := uint16(5201), uint16(30000+i)
		if back {
			source, destination = destination, source
		}
		be.PutUint16(d[34:], source)
		be.PutUint16(d[36:], destination)
		be.PutUint32(d[38:], seq)
		be.PutUint32(d[42:], ack)
		d[46], d[47] = byte(header/4)<<4, flags
		be.PutUint16(d[48:], 2000)
		copy(d[54:], options)
		be.PutUint32(d[54+len(options):], uint32(now/1000))
		be.PutUint32(d[58+len(options):], uint32(now/1000-20))
		size := 14 + 20 + header
		le.PutUint32(frame, uint32(now/1e6))
		le.PutUint32(frame[4:], uint32(now%1e6))
		le.PutUint32(frame[8:], uint32(size))
		le.PutUint32(frame[12:], uint32(size+payload))
		w.Write(frame[:16+size])
		now += 5
		written++
	}
	const mss, flight, ack, synAck, syn = 1448, 20, 0x10, 0x12, 0x02
	for i := range connections {
		put(i, true, 4999, 0, syn, 0)
		put(i, false, 999, 5000, synAck, 0)
		put(i, true, 5000, 1000, ack, 0)
	}
	for round := uint32(0); written < packets; round++ {
		for i := 0; i < connections && written < packets; i++ {
			next := 1000 + round*2*mss
			put(i, false, next, 5000, ack, mss)
			put(i, false, next+mss, 5000, ack, mss)
			if round > flight {
				put(i, true, 5000, next-2*mss*flight, ack, 0)
			}
			if round%500 == 499 {
				put(i, false, next-mss, 5000, ack, mss)
			}
		}
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
}
