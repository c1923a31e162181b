package bulk

import (
	"time"

	"github.com/fullpipe-net/fullpipe/internal/socket"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// usage is the CPU account of this end's part.
type usage struct {
	process time.Duration
	known   bool
	host    socket.HostCPU
	memory  pressure
}

func startUsage() usage {
	p, err := socket.ProcessCPU()
	return usage{process: p, known: err == nil, host: socket.ReadHostCPU(), memory: readPressure()}
}

func (u usage) stop(c clock, loops []*loop) *transfer.CPU {
	if !u.known {
		return nil
	}
	now, _ := socket.ProcessCPU()
	cpu := &transfer.CPU{Wall: c.now(), Process: now - u.process}
	copies := false
	for _, l := range loops {
		copies = copies || !l.uncopied
		cpu.BusiestThread = max(cpu.BusiestThread, min(float64(l.cpu)/float64(cpu.Wall), 1))
		cpu.RunqueueWait = max(cpu.RunqueueWait, min(float64(l.starved)/float64(cpu.Wall), 1))
	}
	cpu.Host = u.host.Busy()
	cpu.Copies = &copies
	return cpu
}
