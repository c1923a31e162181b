//go:build linux

package bench

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/stats"
)

const speedCommand = "make bank RUN=TestBankDiagnoseSpeed"

// TestBankDiagnoseSpeed compares packets a second with tcptrace's and tshark's on
// captures of headers, run by turns. On one processor the time is what the programs ran,
// which other work on the machine changes least; on two it is the clock's on the wall,
// tcptrace alone on one. It takes a minute, on a busy machine two, and 410 MB of disk.
func TestBankDiagnoseSpeed(t *testing.T) {
	bankOnly(t)
	const packets, rounds = 5_000_000, 9
	const few, slowRounds = 100_000, 3 // tshark takes five seconds or more for a million
	program := releasedProgram(t)
	for _, connections := range []int{1, 1000, 100_000} {
		file, slice := filepath.Join(t.TempDir(), "headers.pcap"), filepath.Join(t.TempDir(), "few.pcap")
		writeCapture(t, file, connections, packets)
		writeCapture(t, slice, connections, few)
		var one, two, theirOne, theirTwo, fewOurs, fewTheirs []float64 // packets a second
		var memory int64
		for round := range rounds {
			alone(t, func() {
				ours := ran(t, "taskset", "-c", "0", program, "diagnose", "--json", file)
				theirs := ran(t, "taskset", "-c", "0", "tcptrace", "-n", "-l", "-r", file)
				both := ran(t, "taskset", "-c", "0,1", program, "diagnose", "--json", file)
				one, theirOne = append(one, packets/ours.processor), append(theirOne, packets/theirs.processor)
				two, theirTwo = append(two, packets/both.wall), append(theirTwo, packets/theirs.wall)
				memory = max(memory, ours.memory, both.memory)
				if round < slowRounds {
					ours := ran(t, "taskset", "-c", "0", program, "diagnose", "--json", slice)
					theirs := ran(t, "taskset", "-c", "0", "tshark", "-r", slice, "-q", "-z", "conv,tcp")
					fewOurs, fewTheirs = append(fewOurs, few/ours.processor), append(fewTheirs, few/theirs.processor)
				}
			})
		}
		load := fmt.Sprintf("%d connections, %d million packets of headers", connections, packets/1_000_000)
		if connections == 1 {
			load = strings.Replace(load, "connections", "connection", 1)
		}
		recordFactor(t, "one processor, "+load, "tcptrace", 5, one, theirOne)
		if connections > 1 {
			recordFactor(t, "two processors, "+load, "tcptrace on one", 8, two, theirTwo)
		}
		recordFactor(t, "one processor, the first 100,000 of "+load, "tshark -z conv,tcp", 1, fewOurs, fewTheirs)
		recordMemory(t, load, 250e6, memory, fmt.Sprintf("the most of %d runs", 2*rounds))
	}
}

// TestBankDiagnoseMemory measures the memory that large and hostile captures take. They come through standard input
// while they are written, so none is on disk. It takes half a minute, on a busy machine two.
func TestBankDiagnoseMemory(t *testing.T) {
	bankOnly(t)
	program := releasedProgram(t)
	for _, c := range []struct {
		name  string
		limit float64
		write func(w io.Writer) error
	}{
		{"10 GB: 120 million packets of headers, 1000 connections", 1e9, func(w io.Writer) error {
			return writeHeaders(w,
				1000, 120_000_000)
		}},
		{"a flood of 2 million SYNs, each of another connection", 200e6, func(w io.Writer) error {
			return writeFlood(w,
				2_000_000)
		}},
	} {
		cmd := exec.Command(program, "diagnose", "--json", "-")
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		if err := errors.Join(c.write(in), in.Close(), cmd.Wait()); err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		recordMemory(t, c.name+", through standard input", c.limit, memoryOf(cmd), fmt.Sprintf("one run of %.0f s",
			time.Since(start).Seconds()))
	}
}

// recordFactor records how many times faster diagnose is than another program, judged by the interval of the paired
// runs' ratios.
func recordFactor(t *testing.T, name, than string, least float64, ours, theirs []float64) {
	t.Helper()
	factor := stats.Gain(theirs, ours, 0.95)
	record(t, bankRow{Section: "captures", Case: name, Claim: fmt.Sprintf("at least %.0f × %s", least, than),
		Measured: fmt.Sprintf("%.1f ×: %.1f million packets/s, theirs %.3g", factor.Mid, stats.Median(ours)/1e6,
			stats.Median(theirs)/1e6),
		Spread: fmt.Sprintf("95 %% interval %.1f to %.1f of %d pairs; %.1f to %.1f million packets/s", factor.Low,
			factor.High, len(ours), slices.Min(ours)/1e6, slices.Max(ours)/1e6),
		Verdict: byInterval(factor.Low >= least, factor.Low >= least || factor.High < least), Command: speedCommand})
}

func recordMemory(t *testing.T, name string, limit float64, most int64, spread string) {
	t.Helper()
	record(t, bankRow{Section: "captures", Case: "memory, " + name, Claim: fmt.Sprintf("below %.0f MB", limit/1e6),
		Measured: fmt.Sprintf("%.0f MB", float64(most)/1e6), Spread: spread, Verdict: byInterval(float64(most) < limit, true),
		Command: "make bank RUN=TestBankDiagnose"})
}

// cost is the cost of one run: seconds, and bytes of memory at the peak.
type cost struct {
	processor, wall float64
	memory          int64
}

// ran runs a program over a capture.
func ran(t *testing.T, args ...string) cost {
	t.Helper()
	cmd := exec.Command(args[0], args[1:]...)
	start := time.Now()
	if out, err := cmd.Output(); err != nil || len(out) < 100 {
		t.Fatalf("%v: %v, %.300s", args, err, out)
	}
	wall := time.Since(start)
	return cost{(cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds(), wall.Seconds(), memoryOf(cmd)}
}

func memoryOf(cmd *exec.Cmd) int64 {
	return cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss * 1024
}

// releasedProgram is the program as a release and `make build` compile it.
func releasedProgram(t *testing.T) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "fullpipe")
	build := exec.Command("go", "build", "-pgo=cmd/fullpipe/busy.pgo", "-o", program, "./cmd/fullpipe")
	build.Dir, build.Env = "..", append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v: %s", err, out)
	}
	return program
}

func writeCapture(t *testing.T, name string, connections, packets int) {
	t.Helper()
	file, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(writeHeaders(file, connections, packets), file.Close()); err != nil {
		t.Fatal(err)
	}
}

// writeHeaders writes interleaved bulk transfers over the given number of connections: two segments for each
// acknowledgement, a retransmission every thousand.
func writeHeaders(out io.Writer, connections, packets int) error {
	w := captureWriter(out)
	le, be := binary.LittleEndian, binary.BigEndian
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
	return w.Flush()
}

// captureWriter begins a pcap file of Ethernet.
func captureWriter(out io.Writer) *bufio.Writer {
	w, le := bufio.NewWriterSize(out, 1<<20), binary.LittleEndian
	head := le.AppendUint16(le.AppendUint16(le.AppendUint32(nil, 0xa1b2c3d4), 2), 4)
	w.Write(le.AppendUint32(le.AppendUint32(le.AppendUint64(head, 0), 96), 1))
	return w
}

// writeFlood writes SYNs a microsecond apart, each from another address and port.
func writeFlood(out io.Writer, packets int) error {
	w := captureWriter(out)
	le, be := binary.LittleEndian, binary.BigEndian
	frame := make([]byte, 16+14+20+20)
	le.PutUint32(frame[8:], uint32(len(frame)-16))
	le.PutUint32(frame[12:], uint32(len(frame)-16))
	d := frame[16:]
	d[12], d[14], d[17], d[22], d[23], d[46], d[47] = 8, 0x45, 40, 64, 6, 0x50, 2
	be.PutUint32(d[30:], 0x0a000001)
	be.PutUint16(d[36:], 443)
	for i := range packets {
		le.PutUint32(frame, 1_700_000_000+uint32(i/1e6))
		le.PutUint32(frame[4:], uint32(i%1e6))
		be.PutUint32(d[26:], 0xc6120000+uint32(i>>6))
		be.PutUint16(d[34:], uint16(1024+i))
		be.PutUint32(d[38:], uint32(i)*977)
		w.Write(frame)
	}
	return w.Flush()
}
