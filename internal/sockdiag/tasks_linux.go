package sockdiag

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"

	"github.com/fullpipe-net/fullpipe/internal/bpf"
)

// Tasks asks the kernel which process has which TCP socket open, of all processes at once, by an
// eBPF iterator over their files (task_file, kernel/bpf/task_iter.c; Linux 5.11 with BTF). It takes a
// sixth of what walking /proc does. It is not safe for use by several goroutines.
type Tasks struct {
	bpf.Set
	iter *link.Iter
}

// initialPIDs is the inode of the PID namespace whose numbers the kernel returns (include/uapi/linux/nsfs.h,
// PID_NS_INIT_INO).
const initialPIDs = "pid:[4026531836]"

// taskRecord is what the program writes of each socket: its inode and its process, 64 bits each.
const taskRecord = 16

// OpenTasks needs CAP_BPF and CAP_PERFMON, and to be in the initial PID namespace.
func OpenTasks() (*Tasks, error) {
	if in, err := os.Readlink("/proc/self/ns/pid"); err != nil || in != initialPIDs {
		return nil, errors.Join(errors.New("the kernel's numbers of processes are not this namespace's"), err)
	}
	code, err := tasksProgram()
	if err != nil {
		return nil, fmt.Errorf("eBPF task_file iterator: %w", err)
	}
	t := &Tasks{}
	t.iter, err = t.AttachIterator(bpf.IterFiles, "task_file", code)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("eBPF task_file iterator: %w", err), t.Close())
	}
	return t, nil
}

// Each calls each with every TCP socket that a process has open, and that process's PID, lower ones first. It is not
// atomic: sockets that open meanwhile may be missed.
func (t *Tasks) Each(each func(pid int, inode uint32)) error {
	file, err := t.iter.Open()
	if err != nil {
		return fmt.Errorf("eBPF task_file iterator: %w", err)
	}
	defer file.Close()
	records := bufio.NewReaderSize(file, 32<<10)
	var one [taskRecord]byte
	for {
		switch _, err := io.ReadFull(records, one[:]); {
		case err == io.EOF:
			return nil
		case err != nil:
			return fmt.Errorf("eBPF task_file iterator: %w", err)
		}
		each(int(binary.NativeEndian.Uint64(one[8:])), uint32(binary.NativeEndian.Uint64(one[:])))
	}
}

// tasksProgram is called with each open file of each process:
//
//	sock = bpf_sock_from_file(file)
//	if (sock && sock->sk && sock->sk->sk_protocol == IPPROTO_TCP)
//		bpf_seq_write(meta->seq, {file->f_inode->i_ino, task->tgid})
//
// Where members lie is read from this kernel's own description.
func tasksProgram() (asm.Instructions, error) {
	kernel, err := bpf.KernelLayout()
	if err != nil {
		return nil, err
	}
	at := kernel.At
	const context, file, task, out = asm.R6, asm.R7, asm.R8, "out"
	const ctx = "bpf_iter__task_file"
	code := asm.Instructions{
		asm.Mov.Reg(context, asm.R1),
		asm.LoadMem(file, context, at(ctx, "file"), asm.DWord),
		asm.JEq.Imm(file, 0, out),
		asm.LoadMem(task, context, at(ctx, "task"), asm.DWord),
		asm.JEq.Imm(task, 0, out),
		asm.Mov.Reg(asm.R1, file),
		asm.FnSockFromFile.Call(),
		asm.JEq.Imm(asm.R0, 0, out),
		asm.LoadMem(asm.R1, asm.R0, at("socket", "sk"), asm.DWord),
		asm.JEq.Imm(asm.R1, 0, out),
		asm.LoadMem(asm.R2, asm.R1, at("sock", "sk_protocol"), asm.Half),
		asm.JNE.Imm(asm.R2, protoTCP, out),
		asm.LoadMem(asm.R2, file, at("file", "f_inode"), asm.DWord),
		asm.LoadMem(asm.R2, asm.R2, at("inode", "i_ino"), asm.DWord),
		asm.StoreMem(asm.RFP, -taskRecord, asm.R2, asm.DWord),
		asm.LoadMem(asm.R2, task, at("task_struct", "tgid"), asm.Word),
		asm.StoreMem(asm.RFP, -taskRecord+8, asm.R2, asm.DWord),
		asm.LoadMem(asm.R1, context, at(ctx, "meta"), asm.DWord),
		asm.LoadMem(asm.R1, asm.R1, at("bpf_iter_meta", "seq"), asm.DWord),
		asm.Mov.Reg(asm.R2, asm.RFP),
		asm.Add.Imm(asm.R2, -taskRecord),
		asm.Mov.Imm(asm.R3, taskRecord),
		asm.FnSeqWrite.Call(),
		asm.Mov.Imm(asm.R0, 0).WithSymbol(out),
		asm.Return(),
	}
	return code, kernel.Err()
}
