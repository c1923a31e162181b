package waits

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"

	"github.com/fullpipe-net/fullpipe/internal/bpf"
)

// operation is a kind of requests of a disk.
type operation struct {
	disk  string // without /dev/
	write bool
}

// disks counts the requests of block devices.
type disks struct {
	totals *ebpf.Map
	sums   map[operation]Requests
	names  map[[2]uint32]string
}

// The sizes of the maps' keys and values in bytes, and the maximum number of requests in flight and
// of devices.
const (
	diskKey     = 16 // major, minor, operation
	diskValue   = 24 // requests, ns, bytes
	maxInFlight = 8192
	maxDisks    = 256
)

// programs returns the programs that run when a device gets a request and when it has completed it:
//
//	block_rq_issue(struct request *rq)
//	block_rq_complete(struct request *rq, blk_status_t error, unsigned int nr_bytes)
func (d *disks) programs(kernel *bpf.Layout, set *bpf.Set) (issued, completed asm.Instructions, err error) {
	d.sums = map[operation]Requests{}
	d.names = map[[2]uint32]string{}
	pending, err := set.Map(ebpf.MapSpec{Name: "pending", Type: ebpf.Hash, KeySize: 8, ValueSize: 8,
		MaxEntries: maxInFlight})
	if err != nil {
		return nil, nil, err
	}
	d.totals, err = set.Map(ebpf.MapSpec{Name: "disks", Type: ebpf.Hash, KeySize: diskKey, ValueSize: diskValue,
		MaxEntries: maxDisks})
	if err != nil {
		return nil, nil, err
	}
	const onRequest, onTime, onKey, onSums = -8, -16, -32, -56
	const context, request, sums = asm.R6, asm.R7, asm.R8
	at := kernel.At
	with := func(of int, key int32) asm.Instructions {
		return asm.Instructions{
			asm.LoadMapPtr(asm.R1, of),
			asm.Mov.Reg(asm.R2, asm.RFP),
			asm.Add.Imm(asm.R2, key),
		}
	}
	update := func(of int, key, value int32) asm.Instructions {
		return append(with(of, key),
			asm.Mov.Reg(asm.R3, asm.RFP),
			asm.Add.Imm(asm.R3, value),
			asm.Mov.Imm(asm.R4, 0),
			asm.FnMapUpdateElem.Call())
	}
	begin := asm.Instructions{
		asm.Mov.Reg(context, asm.R1),
		asm.LoadMem(request, context, 0, asm.DWord),
		asm.StoreMem(asm.RFP, onRequest, request, asm.DWord),
	}
	end := asm.Instructions{
		asm.Mov.Imm(asm.R0, 0).WithSymbol("out"),
		asm.Return(),
	}
	issued = append(issued, begin...)
	issued = append(issued,
		asm.FnKtimeGetNs.Call(),
		asm.StoreMem(asm.RFP, onTime, asm.R0, asm.DWord))
	issued = append(issued, update(pending.FD(), onRequest, onTime)...)
	issued = append(issued, end...)

	completed = append(completed, begin...)
	completed = append(completed, with(pending.FD(), onRequest)...)
	completed = append(completed,
		asm.FnMapLookupElem.Call(),
		asm.JEq.Imm(asm.R0, 0, "out"),
		asm.LoadMem(sums, asm.R0, 0, asm.DWord),
		asm.FnKtimeGetNs.Call(),
		asm.Sub.Reg(asm.R0, sums),
		asm.StoreMem(asm.RFP, onTime, asm.R0, asm.DWord))
	completed = append(completed, with(pending.FD(), onRequest)...)
	completed = append(completed,
		asm.FnMapDeleteElem.Call(),
		asm.LoadMem(asm.R1, request, at("request", "q"), asm.DWord),
		asm.LoadMem(asm.R1, asm.R1, at("request_queue", "disk"), asm.DWord),
		asm.LoadMem(asm.R2, asm.R1, at("gendisk", "major"), asm.Word),
		asm.StoreMem(asm.RFP, onKey, asm.R2, asm.Word),
		asm.LoadMem(asm.R2, asm.R1, at("gendisk", "first_minor"), asm.Word),
		asm.StoreMem(asm.RFP, onKey+4, asm.R2, asm.Word),
		asm.LoadMem(asm.R2, request, at("request", "cmd_flags"), asm.Word),
		asm.And.Imm(asm.R2, 0xff), // REQ_OP_MASK
		asm.StoreMem(asm.RFP, onKey+8, asm.R2, asm.DWord))
	completed = append(completed, with(d.totals.FD(), onKey)...)
	completed = append(completed,
		asm.FnMapLookupElem.Call(),
		asm.LoadMem(asm.R2, asm.RFP, onTime, asm.DWord),
		asm.LoadMem(asm.R3, context, 16, asm.DWord),
		asm.LSh.Imm(asm.R3, 32),
		asm.RSh.Imm(asm.R3, 32),
		asm.Mov.Imm(asm.R1, 1),
		asm.JEq.Imm(asm.R0, 0, "first"))
	for i, from := range []asm.Register{asm.R1, asm.R2, asm.R3} {
		add := asm.StoreXAdd(asm.R0, from, asm.DWord)
		add.Offset = int16(8 * i)
		completed = append(completed, add)
	}
	completed = append(completed,
		asm.Ja.Label("out"),
		asm.StoreMem(asm.RFP, onSums, asm.R1, asm.DWord).WithSymbol("first"),
		asm.StoreMem(asm.RFP, onSums+8, asm.R2, asm.DWord),
		asm.StoreMem(asm.RFP, onSums+16, asm.R3, asm.DWord))
	completed = append(completed, update(d.totals.FD(), onKey, onSums)...)
	return issued, append(completed, end...), nil
}

// read sums the requests since the beginning.
func (d *disks) read() {
	d.sums = map[operation]Requests{}
	var key [diskKey]byte
	var value [diskValue]byte
	for all := d.totals.Iterate(); all.Next(&key, &value); {
		u64 := func(at int) int64 { return int64(binary.NativeEndian.Uint64(value[at:])) }
		const write = 1 // REQ_OP_WRITE
		o := operation{d.name([2]uint32{binary.NativeEndian.Uint32(key[:]), binary.NativeEndian.Uint32(key[4:])}),
			binary.NativeEndian.Uint32(key[8:]) == write}
		if binary.NativeEndian.Uint32(key[8:]) <= write {
			d.sums[o] = Requests{int(u64(0)), time.Duration(u64(8)), u64(16)}
		}
	}
}

func (d *disks) name(number [2]uint32) string {
	name, known := d.names[number]
	if !known {
		link, err := os.Readlink(fmt.Sprintf("/sys/dev/block/%d:%d", number[0], number[1]))
		if err == nil {
			name = filepath.Base(link)
		}
		d.names[number] = name
	}
	return name
}

// diskOf returns the disk of a partition, both without /dev/.
func diskOf(device string) string {
	link, err := os.Readlink(filepath.Join("/sys/class/block", device))
	if err != nil {
		return device
	}
	if _, err := os.Stat(filepath.Join("/sys/class/block", device, "partition")); err != nil {
		return device
	}
	return filepath.Base(filepath.Dir(link))
}
