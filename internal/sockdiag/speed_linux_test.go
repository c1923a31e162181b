package sockdiag

import (
	"net"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/fullpipe-net/fullpipe/internal/testenv"
	"github.com/fullpipe-net/fullpipe/internal/testenv/must"
)

// crowd keeps n connections open until the benchmark ends.
func crowd(b *testing.B, n int) {
	testenv.Need(b, testenv.Root)
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(b)
	limit := unix.Rlimit{Cur: uint64(2*n + 1000), Max: uint64(2*n + 1000)}
	must.Do(b, unix.Setrlimit(unix.RLIMIT_NOFILE, &limit))
	var all []net.Conn
	for range n {
		c := must.Get(net.Dial("tcp", l.Addr().String()))(b)
		s := must.Get(l.Accept())(b)
		all = append(all, c, s)
	}
	b.Cleanup(func() {
		for _, c := range all {
			c.(*net.TCPConn).SetLinger(0)
			c.Close()
		}
		l.Close()
	})
}

// cpu is what this process has used, kernel included: other programs do not count.
func cpu() int64 {
	var used unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &used); err != nil {
		panic(err)
	}
	return used.Utime.Nano() + used.Stime.Nano()
}

func BenchmarkDump(b *testing.B) {
	crowd(b, 5000)
	c := asking(b)
	sockets := 0
	b.ReportAllocs()
	b.ResetTimer()
	before := cpu()
	for b.Loop() {
		must.Do(b, c.Dump(Connected, AskInfo|AskCongestion|AskMemory, func(*Socket) { sockets++ }))
	}
	b.ReportMetric(float64(cpu()-before)/float64(sockets), "cpu-ns/socket")
}

func BenchmarkLook(b *testing.B) {
	crowd(b, 64)
	c := asking(b)
	var ids []ID
	for _, s := range dumped(b, c, Connected) {
		if len(ids) < 64 {
			ids = append(ids, s.ID())
		}
	}
	b.ReportAllocs()
	b.ResetTimer()
	before := cpu()
	for b.Loop() {
		must.Get(c.Look(ids, AskInfo|AskMemory, func(*Socket) {}))(b)
	}
	b.ReportMetric(float64(cpu()-before)/float64(b.N*len(ids)), "cpu-ns/socket")
}
