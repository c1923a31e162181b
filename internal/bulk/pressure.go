package bulk

import (
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// pressure is this namespace's account of the time in which TCP ran short of memory
// (net.ipv4.tcp_mem) since it began: the kernel counts a time when it begins, and adds its
// length when it ends.
type pressure struct {
	times int64
	took  time.Duration
	known bool
}

func readPressure() pressure {
	text, err := os.ReadFile("/proc/net/netstat")
	if err != nil {
		return pressure{}
	}
	return parsePressure(string(text))
}

// parsePressure reads the pairs of lines of /proc/net/netstat: names, then values in the
// same order. Chrono is in milliseconds (net/ipv4/tcp.c, tcp_leave_memory_pressure; Linux
// 4.13).
func parsePressure(text string) (p pressure) {
	var names []string
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) == 0 || fields[0] != "TcpExt:" {
			continue
		}
		if names == nil {
			names = fields
			continue
		}
		for i, name := range names[:min(len(names), len(fields))] {
			v, err := strconv.ParseInt(fields[i], 10, 64)
			switch {
			case err != nil || v < 0:
			case name == "TCPMemoryPressures":
				p.times = v
				p.known = true
			case name == "TCPMemoryPressuresChrono":
				p.took = time.Duration(min(v, int64(time.Duration(1<<62)/time.Millisecond))) * time.Millisecond
			}
		}
		return p
	}
	return p
}

// since is nil where there was none, or the system does not report. A time that began before
// the transfer counts no longer than the transfer took.
func (p pressure) since(before pressure, took time.Duration) *transfer.MemoryPressure {
	m := transfer.MemoryPressure{Times: p.times - before.times, Time: min(p.took-before.took, took)}
	if !p.known || !before.known || m.Times < 0 || m.Time < 0 || m.Times == 0 && m.Time == 0 {
		return nil
	}
	return &m
}
