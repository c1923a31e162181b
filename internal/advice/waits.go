package advice

import (
	"github.com/fullpipe-net/fullpipe/internal/plan"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
	"github.com/fullpipe-net/fullpipe/internal/verdict/threshold"
)

// Actions against a program's longest wait.
const (
	LessWork       Action = "less-work"       // a byte costs too much of one processor
	FreeProcessors Action = "free-processors" // other programs use them
	RaiseQuota     Action = "raise-cpu-quota" // of the control group
	FasterDisk     Action = "faster-disk"     // or larger and more requests
	MoreMemory     Action = "more-memory"     // the kernel frees memory first
	FollowProgram  Action = "follow-program"  // the other end of a pipe, or a child
	FollowPeer     Action = "follow-peer"     // the other end of another connection
	ReleaseLock    Action = "release-lock"    // of a file, or within the program
	ShorterPause   Action = "shorter-pause"   // the program waits for a timer
)

const maxForecast = 0.9 // a wait's share above which its end leaves the next limiter open

// waiting has the step for each kind of wait (record.Wait); a full send buffer has none.
var waiting = map[string]Step{
	"cpu":       {LessWork, Program, Both, "proc(5) schedstat; zstd(1), gzip(1) levels; ssh_config(5) Ciphers"},
	"run-queue": {FreeProcessors, Host, Both, "proc(5) schedstat; sched(7)"},
	"quota":     {RaiseQuota, Host, Both, "systemd.resource-control(5) CPUQuota; cgroup-v2.rst cpu.max"},
	"disk":      {FasterDisk, Host, Both, "readahead(2); iostat(1) r_await, aqu-sz"},
	"memory":    {MoreMemory, Host, Both, "Documentation/accounting/psi.rst; cgroup-v2.rst memory.high"},
	"process":   {FollowProgram, Program, Both, "pipe(7); wait(2)"},
	"peer":      {FollowPeer, Nowhere, Both, "RFC 9293 section 3.10.3"},
	"lock":      {ReleaseLock, Program, Both, "lslocks(8); flock(2)"},
	"sleep":     {ShorterPause, Program, Both, "nanosleep(2)"},
}

// ForWait returns the action against a program's wait of a kind that takes a share of its time; nil
// where the wait is not most of the time, or the verdict names more than the program itself.
func ForWait(v *verdict.Verdict, kind string, share, goodputBps float64) *Fix {
	step, ok := waiting[kind]
	if !ok || share <= 0.5 || v.Subtype != "" || v.Confidence == verdict.Low {
		return nil
	}
	fix := &Fix{Limiter: v.Limiter, Action: step.Action, Scope: step.Scope, Source: step.Source,
		Settings: []plan.Setting{}}
	switch v.Limiter {
	case verdict.Application:
		fix.End = Sender
	case verdict.ReceiverApplication:
		fix.End = Receiver
	default:
		return nil
	}
	// Without the wait the rest of the program's work takes its time still.
	if share < maxForecast && goodputBps > 0 && step.Scope != Nowhere {
		fix.Expected = &Expected{LowBps: threshold.CauseFactor.Value * goodputBps, HighBps: goodputBps / (1 - share)}
	}
	return fix
}
