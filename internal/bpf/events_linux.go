package bpf

import (
	"encoding/binary"
	"errors"
	"os"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/ringbuf"
)

// Events is a ring buffer from programs to this process, and a count of the records that did not
// fit.
type Events struct {
	reader *ringbuf.Reader
	ring   *ebpf.Map
	lost   *ebpf.Map
}

// Events creates a ring buffer of a power of two of bytes.
func (s *Set) Events(bytes uint32) (*Events, error) {
	ring, err := s.Map(ebpf.MapSpec{Name: "events", Type: ebpf.RingBuf, MaxEntries: bytes})
	if err != nil {
		return nil, err
	}
	lost, err := s.Map(ebpf.MapSpec{Name: "lost", Type: ebpf.Array, KeySize: 4, ValueSize: 8, MaxEntries: 1})
	if err != nil {
		return nil, err
	}
	reader, err := ringbuf.NewReader(ring)
	if err != nil {
		return nil, err
	}
	s.closers = append(s.closers, reader)
	return &Events{reader, ring, lost}, nil
}

// noWakeup is BPF_RB_NO_WAKEUP: waking the reader for each record costs an interrupt, 7 µs in a
// virtual machine.
const noWakeup = 1

// Emit returns the instructions that write size bytes of the stack as a record. They change r0 to
// r5.
func (e *Events) Emit(stack, size int32) asm.Instructions {
	return asm.Instructions{
		asm.LoadMapPtr(asm.R1, e.ring.FD()),
		asm.Mov.Reg(asm.R2, asm.RFP),
		asm.Add.Imm(asm.R2, stack),
		asm.Mov.Imm(asm.R3, size),
		asm.Mov.Imm(asm.R4, noWakeup),
		asm.FnRingbufOutput.Call(),
		asm.JEq.Imm(asm.R0, 0, "emitted"),
		asm.LoadMapValue(asm.R1, e.lost.FD(), 0),
		asm.Mov.Imm(asm.R2, 1),
		asm.StoreXAdd(asm.R1, asm.R2, asm.DWord),
		asm.Mov.Imm(asm.R0, 0).WithSymbol("emitted"),
	}
}

// readInterval is the greatest age of a record when Each reads it.
const readInterval = 50 * time.Millisecond

// Each calls each with every record until Events is closed. After each call of Flush it also calls
// flushed once, when all records before that call have been read. The record is valid during the
// call.
func (e *Events) Each(each func([]byte), flushed func()) error {
	var record ringbuf.Record
	e.reader.SetDeadline(time.Now().Add(readInterval))
	for {
		err := e.reader.ReadInto(&record)
		switch {
		case errors.Is(err, ringbuf.ErrFlushed):
			flushed()
		case errors.Is(err, os.ErrDeadlineExceeded):
			e.reader.SetDeadline(time.Now().Add(readInterval))
		case errors.Is(err, ringbuf.ErrClosed):
			return nil
		case err != nil:
			return err
		default:
			each(record.RawSample)
		}
	}
}

// Flush makes Each read all records now.
func (e *Events) Flush() error { return e.reader.Flush() }

// Lost returns how many records did not fit.
func (e *Events) Lost() (n uint64, err error) {
	var value [8]byte
	err = e.lost.Lookup(uint32(0), &value)
	return binary.NativeEndian.Uint64(value[:]), err
}
