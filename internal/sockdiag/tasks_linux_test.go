package sockdiag

import (
	"errors"
	"net"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/fullpipe-net/fullpipe/internal/testenv"
	"github.com/fullpipe-net/fullpipe/internal/testenv/must"
)

// TestTasks finds this process as the owner of both ends of a connection.
func TestTasks(t *testing.T) {
	testenv.Need(t, testenv.BPF)
	tasks := must.Get(OpenTasks())(t)
	defer tasks.Close()
	client, server := pair(t, "127.0.0.1:0", "127.0.0.1")
	want := map[uint32]bool{}
	for _, c := range []*net.TCPConn{client, server} {
		raw, err := c.SyscallConn()
		if err != nil {
			t.Fatal(err)
		}
		var stat unix.Stat_t
		must.Do(t, raw.Control(func(fd uintptr) { err = unix.Fstat(int(fd), &stat) }))
		want[uint32(stat.Ino)] = true
	}
	for range 2 { // each time anew
		found := 0
		must.Do(t, tasks.Each(func(pid int, inode uint32) {
			if want[inode] && pid == os.Getpid() {
				found++
			}
		}))
		if found != 2 {
			t.Errorf("%d of 2 sockets are found to be ours", found)
		}
	}
	if err := errors.Join(tasks.Close(), tasks.Close()); err != nil {
		t.Errorf("closed twice: %v", err)
	}
}

// BenchmarkTasks is what it takes to learn whose 10,000 sockets are.
func BenchmarkTasks(b *testing.B) {
	testenv.Need(b, testenv.BPF)
	tasks := must.Get(OpenTasks())(b)
	defer tasks.Close()
	crowd(b, 5000)
	b.ReportAllocs()
	before, sockets := cpu(), 0
	for b.Loop() {
		must.Do(b, tasks.Each(func(int, uint32) { sockets++ }))
	}
	b.ReportMetric(float64(cpu()-before)/float64(sockets), "cpu-ns/socket")
}

// BenchmarkHolders is the same by /proc.
func BenchmarkHolders(b *testing.B) {
	crowd(b, 5000)
	var h Holders
	b.ReportAllocs()
	before, sockets := cpu(), 0
	for b.Loop() {
		must.Do(b, h.Each(os.Getpid(), func(int, uint32) { sockets++ }))
	}
	b.ReportMetric(float64(cpu()-before)/float64(sockets), "cpu-ns/socket")
}
