package sockdiag

import (
	"net"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/fullpipe-net/fullpipe/internal/testenv"
)

// crowd keeps n connections open until the benchmark ends.
func crowd(b *testing.B, n int) {
	testenv.Need(b, testenv.Root)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	limit := unix.Rlimit{Cur: uint64(2*n + 1000), Max: uint64(2*n + 1000)}
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		b.Fatal(err)
	}
	var all []net.Conn
	for range n {
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			b.Fatal(err)
		}
		s, err := l.Accept()
		if err != nil {
			b.Fatal(err)
		}
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
		if err := c.Dump(Connected, AskInfo|AskCongestion|AskMemory, func(*Socket) { sockets++ }); err != nil {
			b.Fatal(err)
		}
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
		if _, err := c.Look(ids, AskInfo|AskMemory, func(*Socket) {}); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(cpu()-before)/float64(b.N*len(ids)), "cpu-ns/socket")
}
