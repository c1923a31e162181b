package bulk

import (
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/socket"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// usage is the CPU account of this end's part.
type usage struct {
	process time.Duration
	known   bool
	host    hostCPU
	memory  pressure
}

func startUsage() usage {
	p, err := socket.ProcessCPU()
	return usage{process: p, known: err == nil, host: readHostCPU(), memory: readPressure()}
}

func (u usage) stop(c clock, loops []*loop) *transfer.CPU {
	if !u.known {
		return nil
	}
	now, _ := socket.ProcessCPU()
	cpu := &transfer.CPU{Wall: c.now(), Process: now - u.process}
	for _, l := range loops {
		cpu.BusiestThread = max(cpu.BusiestThread, min(float64(l.cpu)/float64(cpu.Wall), 1))
		cpu.RunqueueWait = max(cpu.RunqueueWait, min(float64(l.starved)/float64(cpu.Wall), 1))
	}
	if h := readHostCPU(); h.total > u.host.total && u.host.total > 0 {
		// iowait, which counts as idle, may go back (proc(5)).
		idle := max(int64(h.idle-u.host.idle), 0)
		share := 1 - min(float64(idle)/float64(h.total-u.host.total), 1)
		cpu.Host = &share
	}
	return cpu
}

// hostCPU is the machine's time since it started, in jiffies of all CPUs together.
type hostCPU struct{ idle, total uint64 }

// readHostCPU reads the first line of /proc/stat (proc(5)): user, nice, system, idle,
// iowait, irq, softirq, steal, and guest times that user and nice contain already. Zero
// means unknown.
func readHostCPU() hostCPU {
	b, err := os.ReadFile("/proc/stat")
	if err != nil {
		return hostCPU{}
	}
	line, _, _ := strings.Cut(string(b), "\n")
	fields := strings.Fields(line)
	if len(fields) < 9 || fields[0] != "cpu" {
		return hostCPU{}
	}
	var h hostCPU
	for i, f := range fields[1:9] {
		v, err := strconv.ParseUint(f, 10, 64)
		if err != nil {
			return hostCPU{}
		}
		h.total += v
		if i == 3 || i == 4 {
			h.idle += v
		}
	}
	return h
}
