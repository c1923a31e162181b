package watch

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fullpipe-net/fullpipe/internal/sockdiag"
	"github.com/fullpipe-net/fullpipe/internal/testenv"
	"github.com/fullpipe-net/fullpipe/internal/testenv/must"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
	"github.com/fullpipe-net/fullpipe/internal/verdict/threshold"
)

// loop is a connection within this host: its client's and its server's end.
func loop(t *testing.T, l net.Listener) (client, server *net.TCPConn) {
	t.Helper()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	s, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close(); s.Close() })
	return c.(*net.TCPConn), s.(*net.TCPConn)
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

// info is what the kernel says of a connection.
func info(t *testing.T, c *net.TCPConn) (i *unix.TCPInfo) {
	t.Helper()
	raw, err := c.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var failed error
	err = raw.Control(func(fd uintptr) { i, failed = unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO) })
	if err := errors.Join(err, failed); err != nil {
		t.Fatal(err)
	}
	return i
}

// TestDumps checks when all connections are read: of a whole span soon after its beginning.
func TestDumps(t *testing.T) {
	const ms = time.Millisecond
	for name, c := range map[string]struct {
		cfg  Config
		late time.Duration // that each dump ends
		want []time.Duration
	}{
		"periods": {Config{Every: time.Second}, 0, []time.Duration{1000 * ms, 2000 * ms, 3000 * ms}},
		"a whole span": {Config{Every: time.Second, Cumulative: true}, 0,
			[]time.Duration{100 * ms, 300 * ms, 700 * ms, 1500 * ms, 2500 * ms}},
		"slow dumps":       {Config{Every: time.Second}, 1500 * ms, []time.Duration{1000 * ms, 3000 * ms, 5000 * ms}},
		"shorter than all": {Config{Every: 50 * ms, Cumulative: true}, 0, []time.Duration{50 * ms, 100 * ms, 150 * ms}},
	} {
		due := newDumps(0, c.cfg)
		for i, want := range c.want {
			if due.next != want {
				t.Errorf("%s: dump %d at %v, want %v", name, i+1, due.next, want)
			}
			due.done(due.next + c.late)
		}
	}
}

// TestWatcher_JudgesBySamples: the verdict on a connection that began after the first dump rests on samples where
// there are WatchedSamples of it since the second.
func TestWatcher_JudgesBySamples(t *testing.T) {
	for _, count := range []int{0, threshold.WatchedSamples - 1, threshold.WatchedSamples} {
		l := listen(t)
		port := uint16(l.Addr().(*net.TCPAddr).Port)
		w := newWatcher(Config{Cumulative: true, Match: Match{PIDs: []int{os.Getpid()}, Ports: []uint16{port},
			Local: true}}.complete())
		if err := errors.Join(w.open(), w.begin()); err != nil {
			t.Fatal(err)
		}
		defer w.close()
		client, server := loop(t, l)
		move := func() { // the answer acknowledges what was sent
			client.Write(make([]byte, threshold.WatchedBytes))
			_, err := io.ReadFull(server, make([]byte, threshold.WatchedBytes))
			server.Write([]byte{0})
			if _, err2 := client.Read(make([]byte, 1)); err != nil || err2 != nil {
				t.Fatal(err, err2)
			}
		}
		move()
		if err := w.period(nil, false); err != nil {
			t.Fatal(err)
		}
		for range count {
			move()
			if err := w.sample(); err != nil {
				t.Fatal(err)
			}
		}
		move()
		judged := 0
		if err := w.period(func(v *View) error {
			for i := range v.Connections {
				for _, f := range v.Connections[i].Flows {
					if f.Bytes < threshold.WatchedBytes {
						continue // the responses
					}
					judged++
					if f.Sampled != (count >= threshold.WatchedSamples) || f.Verdict.Limiter == "" {
						t.Errorf("%d samples: %s is %+v", count, f.Direction, f)
					}
				}
			}
			return nil
		}, true); err != nil {
			t.Fatal(err)
		}
		if judged != 2 { // sent by the client and received by the server
			t.Errorf("%d samples: %d directions are judged", count, judged)
		}
	}
}

// TestProgramsOfEndedConnections: in the one view of a whole span, a connection that ended before it is its program's.
func TestProgramsOfEndedConnections(t *testing.T) {
	l := listen(t)
	port := uint16(l.Addr().(*net.TCPAddr).Port)
	w := newWatcher(Config{Cumulative: true, Match: Match{Local: true, Ports: []uint16{port}}, Sampled: -1}.complete())
	if err := w.open(); err != nil {
		t.Fatal(err)
	}
	defer w.close()
	if err := w.begin(); err != nil {
		t.Fatal(err)
	}
	client, server := loop(t, l)
	client.Write(make([]byte, 1000))
	if _, err := io.ReadFull(server, make([]byte, 1000)); err != nil {
		t.Fatal(err)
	}
	if err := w.period(nil, false); err != nil {
		t.Fatal(err)
	}
	client.Close()
	server.Close()
	var owners []Owner
	if err := w.period(func(v *View) error {
		for i := range v.Connections {
			owners = append(owners, v.Connections[i].Owner)
		}
		return nil
	}, true); err != nil {
		t.Fatal(err)
	}
	if len(owners) != 2 || owners[0].PID != os.Getpid() || owners[1].PID != os.Getpid() {
		t.Errorf("the owners are %+v, not this program (%d)", owners, os.Getpid())
	}
}

// TestWatcher_ReleasesNamespace: a watch of another network namespace ends with the process whose namespace it
// entered, reports the end, and closes every socket that would keep the namespace alive.
func TestWatcher_ReleasesNamespace(t *testing.T) {
	testenv.Need(t, testenv.Root)
	child := exec.Command("sleep", "60")
	child.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNET}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	end := sync.OnceFunc(func() {
		child.Process.Kill()
		child.Wait()
	})
	defer end()
	path := fmt.Sprintf("/proc/%d/ns/net", child.Process.Pid)
	sockets := func() (n int) {
		files, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			if name, err := os.Readlink("/proc/self/fd/" + f.Name()); err == nil && strings.HasPrefix(name, "socket:") {
				n++
			}
		}
		return n
	}
	before := sockets()
	var last View
	err := Run(t.Context(), Config{Namespace: path, Every: 100 * time.Millisecond, Sample: 20 * time.Millisecond},
		func(v *View) error {
			end()
			last = *v
			return nil
		})
	ended := func(n verdict.Note) bool { return n.Code == verdict.NamespaceEnded }
	if err != nil || !slices.ContainsFunc(last.Unread, ended) {
		t.Errorf("%v: %+v", err, last)
	}
	if n := sockets(); n > before { // those of tests before this one may end meanwhile
		t.Errorf("%d sockets are open, %d were", n, before)
	}
	if err := Run(t.Context(), Config{Namespace: path}, nil); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the namespace of a process that has ended: %v", err)
	}
}

// TestPeriod_FailedDumps: where the kernel had no answer for a moment, the watch goes on and says so.
func TestPeriod_FailedDumps(t *testing.T) {
	for err, goesOn := range map[error]bool{&sockdiag.Error{Err: unix.ENOBUFS}: true,
		fmt.Errorf("read the connections: %w", unix.EAGAIN): true, unix.EBADF: false, nil: false} {
		if passing(err) != goesOn {
			t.Errorf("%v passes: %v", err, !goesOn)
		}
	}
	w, _ := crowd(t, 1)
	w.missed = 2
	var unread []verdict.Note
	if err := w.period(func(v *View) error { unread = v.Unread; return nil }, false); err != nil {
		t.Fatal(err)
	}
	failed := func(n verdict.Note) bool { return n.Code == verdict.DumpsFailed && n.Values["dumps"] == 2 }
	if !slices.ContainsFunc(unread, failed) {
		t.Errorf("%+v", unread)
	}
}

// TestPeriod_WithinHost: connections that are left out because both ends are here are counted where their ports and
// their owner were asked for.
func TestPeriod_WithinHost(t *testing.T) {
	known, _ := crowd(t, 3)
	port := known.cfg.Match.Ports[0]
	for want, match := range map[float64]Match{0: {Local: true, Ports: []uint16{port}}, 3: {Ports: []uint16{port}}} {
		w := newWatcher(Config{Match: match}.complete())
		if err := errors.Join(w.open(), w.begin()); err != nil {
			t.Fatal(err)
		}
		defer w.close()
		var left float64
		if err := w.period(func(v *View) error {
			for _, n := range v.Unread {
				if n.Code == verdict.WithinHost {
					left = n.Values["connections"]
				}
			}
			return nil
		}, false); err != nil {
			t.Fatal(err)
		}
		if left != want {
			t.Errorf("%+v: %.0f connections within this host were left out, want %.0f", match, left, want)
		}
	}
}

// TestOwnersByBothWays finds the same owners by eBPF and by /proc.
func TestOwnersByBothWays(t *testing.T) {
	client, _ := loop(t, listen(t))
	raw, err := client.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var stat unix.Stat_t
	if err := raw.Control(func(fd uintptr) { err = unix.Fstat(int(fd), &stat) }); err != nil {
		t.Fatal(err)
	}
	said := map[bool]Owner{}
	for _, many := range []bool{false, true} {
		o := newOwners(&Match{}, "")
		defer o.close()
		o.many = many
		said[many] = o.of(&Snapshot{Inode: uint32(stat.Ino)}, 0, time.Second, nil)
		if many && o.tasks == nil {
			t.Log("eBPF is not to be had here")
		}
	}
	if said[true] != said[false] || said[true].PID != os.Getpid() {
		t.Errorf("by /proc %+v, by eBPF %+v", said[false], said[true])
	}
}

// TestFindFillers: a watch of one program names another one whose connection fills the queue.
func TestFindFillers(t *testing.T) {
	client, _ := loop(t, listen(t))
	raw := must.Get(client.SyscallConn())(t)
	var stat unix.Stat_t
	var err error
	if failed := raw.Control(func(fd uintptr) { err = unix.Fstat(int(fd), &stat) }); failed != nil || err != nil {
		t.Fatal(failed, err)
	}
	filler := &Filler{Connection: &Connection{Snapshot: Snapshot{Inode: uint32(stat.Ino)}}}
	v := &View{Connections: []Observed{{Filler: filler}, {}}}
	w := &watcher{cfg: Config{Match: Match{PIDs: []int{1}}}, start: time.Now()}
	w.findFillers(v)
	if filler.Owner.PID != os.Getpid() {
		t.Errorf("the queue is filled by %+v", filler.Owner)
	}
}

// TestWalkEndsWithTheLastAsked: descriptors are read until the owners that are asked for are known, and
// on from there where another is.
func TestWalkEndsWithTheLastAsked(t *testing.T) {
	var inodes []uint32
	for range 2000 {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { unix.Close(fd) })
		var stat unix.Stat_t
		if err := unix.Fstat(fd, &stat); err != nil {
			t.Fatal(err)
		}
		inodes = append(inodes, uint32(stat.Ino))
	}
	first, last := inodes[0], inodes[len(inodes)-1]
	o := newOwners(&Match{}, "")
	defer o.close()
	asked := func() map[uint32]bool { return map[uint32]bool{first: true} }
	if owner := o.of(&Snapshot{Inode: first}, 0, time.Second, asked); owner.PID != os.Getpid() {
		t.Errorf("the one asked for is %+v's", owner)
	}
	if o.processes[last] != nil {
		t.Error("all descriptors were read, though only the first was asked for")
	}
	if owner := o.of(&Snapshot{Inode: last}, 0, time.Hour, asked); owner.PID != os.Getpid() {
		t.Errorf("one that an earlier walk did not come to is %+v's", owner)
	}
}
