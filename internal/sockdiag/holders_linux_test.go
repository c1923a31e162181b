package sockdiag

import (
	"net"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/fullpipe-net/fullpipe/internal/testenv/must"
)

// TestHolders finds this process's sockets by their inodes, and no other open file.
func TestHolders(t *testing.T) {
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer l.Close()
	raw, err := l.(*net.TCPListener).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var stat unix.Stat_t
	listener := 0
	must.Do(t, raw.Control(func(fd uintptr) { listener = int(fd); err = unix.Fstat(listener, &stat) }))
	f := must.Get(os.Open(os.DevNull))(t)
	defer f.Close()
	var file unix.Stat_t
	must.Do(t, unix.Fstat(int(f.Fd()), &file))
	var h Holders
	found := false
	if err := h.Each(os.Getpid(), func(fd int, inode uint32) {
		found = found || inode == uint32(stat.Ino) && fd == listener
		if inode == uint32(file.Ino) {
			t.Errorf("%s is reported as a socket", os.DevNull)
		}
	}); err != nil || !found {
		t.Errorf("the listener %d is not among the process's sockets: %v", stat.Ino, err)
	}
	if err := h.Each(1<<30, func(int, uint32) {}); err == nil {
		t.Error("a process that is not there")
	}
	if n := testing.AllocsPerRun(10, func() { h.Each(os.Getpid(), func(int, uint32) {}) }); n > 8 {
		t.Errorf("%.0f allocations for a process", n)
	}
}
