package sockdiag

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/fullpipe-net/fullpipe/internal/socket"
	"github.com/fullpipe-net/fullpipe/internal/testenv"
	"github.com/fullpipe-net/fullpipe/internal/testenv/must"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

const mark = "FULLPIPE_SOCKDIAG_TEST"

// TestMain runs the tests in a network namespace of their own: all sockets in it are theirs.
func TestMain(m *testing.M) {
	switch os.Getenv(mark) {
	case "inside":
		up()
		os.Exit(m.Run())
	case "elsewhere":
		up()
		l, err := net.Listen("tcp", "127.0.0.1:7777")
		fmt.Println("ready", err)
		os.Stdin.Read(make([]byte, 1))
		l.Close()
		return
	}
	testenv.NeedMain(testenv.NetworkNamespace)
	cmd := exec.Command("/proc/self/exe", os.Args[1:]...)
	cmd.Env = append(os.Environ(), mark+"=inside")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.SysProcAttr = testenv.Namespaces(unix.CLONE_NEWNET)
	err := cmd.Run()
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		os.Exit(exit.ExitCode())
	case err != nil:
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// up brings the loopback up.
func up() {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
	if err == nil {
		var lo *unix.Ifreq
		lo, err = unix.NewIfreq("lo")
		if err == nil {
			lo.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
			err = unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, lo)
		}
		unix.Close(fd)
	}
	if err != nil {
		panic(err)
	}
}

// pair is one connection, both ends of it.
func pair(t testing.TB, listen, dial string) (client, server *net.TCPConn) {
	t.Helper()
	l := must.Get(net.Listen("tcp", listen))(t)
	defer l.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	c := must.Get(net.Dial("tcp", net.JoinHostPort(dial, port)))(t)
	s := must.Get(l.Accept())(t)
	t.Cleanup(func() { c.Close(); s.Close() })
	return c.(*net.TCPConn), s.(*net.TCPConn)
}

func asking(t testing.TB) *Conn {
	t.Helper()
	c := must.Get(Open())(t)
	t.Cleanup(func() { c.Close() })
	return c
}

func cookie(t testing.TB, c *net.TCPConn) (cookie uint64) {
	t.Helper()
	raw, err := c.SyscallConn()
	if err == nil {
		err = errors.Join(raw.Control(func(fd uintptr) {
			cookie, err = unix.GetsockoptUint64(int(fd), unix.SOL_SOCKET, unix.SO_COOKIE)
		}), err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return cookie
}

func local(c net.Conn) netip.AddrPort {
	a := c.LocalAddr().(*net.TCPAddr).AddrPort()
	return netip.AddrPortFrom(a.Addr().Unmap(), a.Port())
}

func dumped(t testing.TB, c *Conn, states States) map[uint64]*Socket {
	t.Helper()
	all := map[uint64]*Socket{}
	must.Do(t, c.Dump(states, AskInfo|AskCongestion|AskMemory,
		func(s *Socket) { all[s.Cookie] = s.Clone() }))
	return all
}

func TestDump_Fields(t *testing.T) {
	c := asking(t)
	for _, at := range []struct{ listen, dial string }{{"127.0.0.1:0", "127.0.0.1"}, {"[::1]:0", "::1"},
		{"[::]:0", "127.0.0.1"}} {
		client, server := pair(t, at.listen, at.dial)
		must.Get(client.Write(make([]byte, 12345)))(t)
		must.Get(server.Read(make([]byte, 45)))(t)
		s := dumped(t, c, Connected)[cookie(t, server)]
		if s == nil {
			t.Fatalf("%s: not known", at.listen)
		}
		if s.State != Established || s.Local != local(server) || s.Remote != local(client) || s.ReadQueue != 12300 ||
			s.Inode == 0 {
			t.Errorf("%s: %+v", at.listen, s)
		}
		if s.UID != uint32(os.Geteuid()) || !s.HasMemory || s.Memory.ReceiveBuffer == 0 || s.Memory.SendBuffer == 0 ||
			len(s.Info) < 192 {
			t.Errorf("%s: %+v", at.listen, s)
		}
		var sample transfer.Sample
		socket.DecodeLinux(s.Info, &sample)
		if sample.Received != 12345 || len(s.Congestion) == 0 || strings.ContainsRune(string(s.Congestion), 0) {
			t.Errorf("%s: %q, %+v", at.listen, s.Congestion, sample)
		}
		if s.ID().Cookie() != s.Cookie {
			t.Errorf("%s: cookie %x in %x", at.listen, s.Cookie, s.ID().Cookie())
		}
	}
}

func TestDump_Backlog(t *testing.T) {
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer l.Close()
	for range 3 {
		c := must.Get(net.Dial("tcp", l.Addr().String()))(t)
		defer c.Close()
	}
	port := uint16(l.Addr().(*net.TCPAddr).Port)
	all := dumped(t, asking(t), Of(Listening))
	maps.DeleteFunc(all, func(_ uint64, s *Socket) bool { return s.Local.Port() != port })
	for _, s := range all {
		if s.State != Listening || s.ReadQueue != 3 || s.WriteQueue == 0 {
			t.Errorf("%+v", s)
		}
	}
	if len(all) != 1 {
		t.Errorf("%d listeners", len(all))
	}
}

// TestInCgroup dumps the sockets of this process's own cgroup, of one that does not exist, and of all.
func TestInCgroup(t *testing.T) {
	four, fourFar := pair(t, "127.0.0.2:0", "127.0.0.2")
	six, sixFar := pair(t, "[::1]:0", "::1")
	all := dumped(t, asking(t), Connected)
	made := all[cookie(t, four)]
	if made == nil || made.Cgroup == 0 {
		t.Fatalf("the socket's cgroup is not reported: %+v", made)
	}
	for _, c := range []struct {
		name   string
		cgroup uint64
		passes bool
	}{{"its own", made.Cgroup, true}, {"no such cgroup", 1 << 60, false}} {
		in := asking(t)
		in.InCgroup(c.cgroup)
		some := dumped(t, in, Connected)
		for _, end := range []*net.TCPConn{four, fourFar, six, sixFar} {
			if _, reported := some[cookie(t, end)]; reported != c.passes {
				t.Errorf("%s: %v → %v is reported: %v", c.name, local(end), remote(end), reported)
			}
		}
	}
}

func remote(c net.Conn) netip.AddrPort {
	a := c.RemoteAddr().(*net.TCPAddr).AddrPort()
	return netip.AddrPortFrom(a.Addr().Unmap(), a.Port())
}

func TestLookFindsEachAndMissesTheGone(t *testing.T) {
	c := asking(t)
	var ids []ID
	var conns []*net.TCPConn
	for i := range 150 { // more than one batch
		listen := []string{"127.0.0.1:0", "[::1]:0", "[::]:0"}[i%3]
		client, _ := pair(t, listen, []string{"127.0.0.1", "::1", "127.0.0.1"}[i%3])
		conns = append(conns, client)
	}
	all := dumped(t, c, Connected)
	for _, client := range conns {
		ids = append(ids, all[cookie(t, client)].ID())
	}
	look := func() (cookies []uint64, gone int) {
		gone = must.Get(c.Look(ids, AskInfo, func(s *Socket) {
			cookies = append(cookies, s.Cookie)
			if len(s.Info) < 192 {
				t.Errorf("an answer without tcp_info: %+v", s)
			}
		}))(t)
		return cookies, gone
	}
	cookies, gone := look()
	var wants []uint64
	for _, id := range ids {
		wants = append(wants, id.Cookie())
	}
	if gone != 0 || !slices.Equal(cookies, wants) {
		t.Errorf("%d of %d in another order, %d gone", len(cookies), len(wants), gone)
	}
	for i := 0; i < len(conns); i += 2 {
		conns[i].SetLinger(0) // no TIME-WAIT
		conns[i].Close()
	}
	cookies, gone = look()
	if len(cookies) != 75 || gone != 75 {
		t.Errorf("after half was closed: %d there, %d gone", len(cookies), gone)
	}
	// A socket that took over the ports is another one.
	stale := ids[1]
	stale.raw[40]++
	if gone, err := c.Look([]ID{stale}, AskInfo, func(*Socket) { t.Error("another socket was returned") }); gone != 1 ||
		err != nil {
		t.Errorf("a cookie of nobody: %d gone, %v", gone, err)
	}
}

func TestDump_AllocatesNothing(t *testing.T) {
	c := asking(t)
	var ids []ID
	for range 20 {
		pair(t, "127.0.0.1:0", "127.0.0.1")
	}
	for _, s := range dumped(t, c, Connected) {
		ids = append(ids, s.ID())
	}
	seen := 0
	each := func(*Socket) { seen++ }
	c.InCgroup(1) // the root: all
	dump := func() {
		must.Do(t, c.Dump(Connected, AskInfo|AskCongestion|AskMemory, each))
	}
	look := func() {
		must.Get(c.Look(ids, AskInfo, each))(t)
	}
	// A request's two callbacks are all: nothing for each socket.
	if n := testing.AllocsPerRun(20, dump); n > 4 {
		t.Errorf("a dump of %d sockets allocates %v times", len(ids), n)
	}
	if n := testing.AllocsPerRun(20, look); n > 4 {
		t.Errorf("looking for %d sockets allocates %v times", len(ids), n)
	}
	if seen == 0 {
		t.Error("nothing was read")
	}
}

func TestAnotherNamespace(t *testing.T) {
	other := exec.Command("/proc/self/exe")
	other.Env = append(os.Environ(), mark+"=elsewhere")
	// No Pdeathsig: it is sent when the thread ends, and threads are thrown away here.
	other.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNET}
	in := must.Get(other.StdinPipe())(t)
	out, err := other.StdoutPipe()
	if err == nil {
		err = other.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	defer func() { in.Close(); other.Wait() }()
	must.Get(out.Read(make([]byte, 20)))(t)
	path := fmt.Sprintf("/proc/%d/ns/net", other.Process.Pid)
	for range 20 { // also where the scheduler offers the main thread
		f := must.Get(Follow(path))(t)
		all := dumped(t, f.Conn, Of(Listening))
		f.Close()
		if len(all) != 1 {
			t.Fatalf("%d listeners there", len(all))
		}
	}
	for _, s := range dumped(t, asking(t), Of(Listening)) {
		if s.Local.Port() == 7777 {
			t.Errorf("%v is reported here", s.Local)
		}
	}
	if _, err := Follow("/proc/self/ns/mnt"); err == nil {
		t.Error("a mount namespace was entered")
	}
	if _, err := Follow("/nowhere"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no such namespace: %v", err)
	}
}
