package lab

import (
	"bufio"
	"encoding/binary"
	"os"
	"slices"
	"sync"
	"time"
)

// tap writes the packets at the middle of the link to a pcap file (nanoseconds, raw IP, headers only): after each
// direction's queue and line, half of its delay from either end. Times are exact, of the link's clock. Lost packets
// are missing.
type tap struct {
	start  time.Time // of the clock
	settle int64     // ns from a packet's time at the middle until it is certainly recorded
	stop   chan struct{}
	done   chan error

	mu      sync.Mutex // guards pending
	pending []tapped
}

type tapped struct {
	at     int64
	length uint16 // of the packet
	kept   uint16
	header [tapLength]byte
}

const tapLength = 128

func newTap(file *os.File, slowest time.Duration) (*tap, error) {
	t := &tap{start: origin, settle: int64(slowest + 200*time.Millisecond), stop: make(chan struct{}),
		done: make(chan error, 1)}
	header := make([]byte, 24)
	order := binary.LittleEndian
	order.PutUint32(header, 0xa1b23c4d)
	order.PutUint16(header[4:], 2)
	order.PutUint16(header[6:], 4)
	order.PutUint32(header[16:], tapLength)
	order.PutUint32(header[20:], 101) // LINKTYPE_RAW
	if _, err := file.Write(header); err != nil {
		return nil, err
	}
	go t.write(file)
	return t, nil
}

// add records a packet of this length at the middle at time at.
func (t *tap) add(at int64, header []byte, length int) {
	p := tapped{at: at, length: uint16(length)}
	p.kept = uint16(copy(p.header[:], header))
	t.mu.Lock()
	t.pending = append(t.pending, p)
	t.mu.Unlock()
}

// write sorts packets by time, since the two directions' threads run independently, until finish.
func (t *tap) write(file *os.File) {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	out := bufio.NewWriterSize(file, 1<<20)
	var held []tapped
	var failed error
	for open := true; open && failed == nil; {
		horizon := int64(0)
		select {
		case <-tick.C:
			horizon = clock() - t.settle
		case <-t.stop:
			horizon = clock()
			open = false
		}
		t.mu.Lock()
		held = append(held, t.pending...)
		t.pending = t.pending[:0]
		t.mu.Unlock()
		slices.SortStableFunc(held, func(a, b tapped) int { return int(a.at - b.at) })
		ready := 0
		for ready < len(held) && held[ready].at <= horizon {
			failed = t.record(out, &held[ready])
			ready++
		}
		held = slices.Delete(held, 0, ready)
	}
	if failed == nil {
		failed = out.Flush()
	}
	file.Close()
	t.done <- failed
}

func (t *tap) record(out *bufio.Writer, p *tapped) error {
	when := t.start.Add(time.Duration(p.at))
	var b [16]byte
	binary.LittleEndian.PutUint32(b[:], uint32(when.Unix()))
	binary.LittleEndian.PutUint32(b[4:], uint32(when.Nanosecond()))
	binary.LittleEndian.PutUint32(b[8:], uint32(p.kept))
	binary.LittleEndian.PutUint32(b[12:], uint32(p.length))
	if _, err := out.Write(b[:]); err != nil {
		return err
	}
	_, err := out.Write(p.header[:p.kept])
	return err
}

// finish writes the remaining packets and closes the file.
func (t *tap) finish() error {
	close(t.stop)
	return <-t.done
}
