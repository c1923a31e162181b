package waits

import (
	"runtime"

	"github.com/cilium/ebpf/asm"
)

// layout returns the offset of a member of a structure.
type layout func(structure string, names ...string) int16

// registers are the members of struct pt_regs with a system call's number and first argument.
var registers = map[string]struct{ call, argument string }{
	"amd64": {"orig_ax", "di"}, "arm64": {"syscallno", "orig_x0"},
}[runtime.GOARCH]

// States and flags of a task (include/linux/sched.h).
const (
	uninterruptible = 0x2
	dead            = 0x80
	ioWorker        = 0x10 // PF_IO_WORKER: its registers are no call's
)

// The stack of the program: a thread's number, a state (since, call, descriptor, uninterruptible),
// a key of totals and a time.
const (
	onThread = -8
	onState  = -32
	onKey    = -48
	onTime   = -56
)

// switched runs when a processor changes from one thread to another:
//
//	sched_switch(bool preempt, struct task_struct *prev, struct task_struct *next, unsigned int prev_state)
//
// It adds the time since a thread of a followed process went to sleep to the totals of its call.
func switched(at layout, followed, threads, totals int) asm.Instructions {
	const context, now, task, state = asm.R6, asm.R7, asm.R8, asm.R9
	lookup := func(of int, key int32) asm.Instructions {
		return asm.Instructions{
			asm.LoadMapPtr(asm.R1, of),
			asm.Mov.Reg(asm.R2, asm.RFP),
			asm.Add.Imm(asm.R2, key),
			asm.FnMapLookupElem.Call(),
		}
	}
	update := func(of int, key, value int32) asm.Instructions {
		return asm.Instructions{
			asm.LoadMapPtr(asm.R1, of),
			asm.Mov.Reg(asm.R2, asm.RFP),
			asm.Add.Imm(asm.R2, key),
			asm.Mov.Reg(asm.R3, asm.RFP),
			asm.Add.Imm(asm.R3, value),
			asm.Mov.Imm(asm.R4, 0),
			asm.FnMapUpdateElem.Call(),
		}
	}
	number := func(from asm.Register, name string) asm.Instructions {
		return asm.Instructions{
			asm.LoadMem(asm.R1, from, at("task_struct", name), asm.Word),
			asm.StoreMem(asm.RFP, onThread, asm.R1, asm.Word),
		}
	}
	code := asm.Instructions{
		asm.Mov.Reg(context, asm.R1),
		asm.FnKtimeGetNs.Call(),
		asm.Mov.Reg(now, asm.R0),
		asm.LoadMem(task, context, 16, asm.DWord),
	}
	code = append(code, number(task, "pid")...)
	code = append(code, lookup(threads, onThread)...)
	code = append(code,
		asm.JEq.Imm(asm.R0, 0, "previous"),
		asm.Mov.Reg(state, asm.R0),
		asm.LoadMem(asm.R1, state, 0, asm.DWord),
		asm.JEq.Imm(asm.R1, 0, "previous"),
		asm.Mov.Imm(asm.R2, 0),
		asm.StoreMem(state, 0, asm.R2, asm.DWord),
		asm.Mov.Reg(asm.R3, now),
		asm.Sub.Reg(asm.R3, asm.R1),
		asm.StoreMem(asm.RFP, onTime, asm.R3, asm.DWord),
		asm.LoadMem(asm.R1, asm.RFP, onThread, asm.Word),
		asm.StoreMem(asm.RFP, onKey, asm.R1, asm.Word),
		asm.LoadMem(asm.R1, state, 8, asm.Word),
		asm.StoreMem(asm.RFP, onKey+4, asm.R1, asm.Word),
		asm.LoadMem(asm.R1, state, 12, asm.Word),
		asm.StoreMem(asm.RFP, onKey+8, asm.R1, asm.Word),
		asm.LoadMem(asm.R1, state, 16, asm.Word),
		asm.StoreMem(asm.RFP, onKey+12, asm.R1, asm.Word))
	code = append(code, lookup(totals, onKey)...)
	code = append(code,
		asm.JEq.Imm(asm.R0, 0, "first"),
		asm.LoadMem(asm.R1, asm.RFP, onTime, asm.DWord),
		asm.StoreXAdd(asm.R0, asm.R1, asm.DWord),
		asm.Ja.Label("previous"))
	first := update(totals, onKey, onTime)
	first[0] = first[0].WithSymbol("first")
	code = append(code, first...)

	code = append(code,
		asm.LoadMem(asm.R1, context, 0, asm.DWord).WithSymbol("previous"),
		asm.And.Imm(asm.R1, 0xff), // preempt: it can still run
		asm.JNE.Imm(asm.R1, 0, "out"),
		asm.LoadMem(state, context, 24, asm.DWord),
		asm.JEq.Imm(state, 0, "out"),
		asm.LoadMem(task, context, 8, asm.DWord))
	code = append(code, number(task, "tgid")...)
	code = append(code, lookup(followed, onThread)...)
	code = append(code, asm.JEq.Imm(asm.R0, 0, "out"))
	code = append(code, number(task, "pid")...)
	code = append(code,
		asm.Mov.Reg(asm.R1, state),
		asm.And.Imm(asm.R1, dead),
		asm.JNE.Imm(asm.R1, 0, "ended"),
		asm.StoreMem(asm.RFP, onState, now, asm.DWord),
		asm.StoreImm(asm.RFP, onState+8, -1, asm.Word),
		asm.StoreImm(asm.RFP, onState+12, 0, asm.Word),
		asm.And.Imm(state, uninterruptible),
		asm.StoreMem(asm.RFP, onState+16, state, asm.Word),
		asm.StoreImm(asm.RFP, onState+20, 0, asm.Word),
		asm.LoadMem(asm.R1, task, at("task_struct", "flags"), asm.Word),
		asm.And.Imm(asm.R1, ioWorker),
		asm.JNE.Imm(asm.R1, 0, "store"),
		asm.Mov.Reg(asm.R1, task),
		asm.FnTaskPtRegs.Call(),
		asm.LoadMem(asm.R1, asm.R0, at("pt_regs", registers.call), asm.DWord),
		asm.StoreMem(asm.RFP, onState+8, asm.R1, asm.Word),
		asm.LoadMem(asm.R1, asm.R0, at("pt_regs", registers.argument), asm.DWord),
		asm.StoreMem(asm.RFP, onState+12, asm.R1, asm.Word))
	store := update(threads, onThread, onState)
	store[0] = store[0].WithSymbol("store")
	code = append(code, store...)
	code = append(code,
		asm.Ja.Label("out"),
		asm.LoadMapPtr(asm.R1, threads).WithSymbol("ended"),
		asm.Mov.Reg(asm.R2, asm.RFP),
		asm.Add.Imm(asm.R2, onThread),
		asm.FnMapDeleteElem.Call())
	return append(code,
		asm.Mov.Imm(asm.R0, 0).WithSymbol("out"),
		asm.Return(),
	)
}
