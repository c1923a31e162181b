package host

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fullpipe-net/fullpipe/internal/audit"
	"github.com/fullpipe-net/fullpipe/internal/plan"
	"github.com/fullpipe-net/fullpipe/internal/testenv"
	"github.com/fullpipe-net/fullpipe/internal/testenv/must"
)

func TestRouteStore_Attributes(t *testing.T) {
	cfg := config(t)
	ip := func(args ...string) string {
		out, err := exec.Command("ip", args...).CombinedOutput()
		if err != nil {
			t.Fatalf("ip %q: %v: %s", args, err, out)
		}
		return string(out)
	}
	ip("link", "set", "lo", "up")
	ip("route", "replace", "10.9.0.0/16", "dev", "lo", "mtu", "lock", "9000", "rto_min", "150ms", "src", "127.0.0.1")
	ip("route", "replace", "10.9.0.0/16", "dev", "lo", "metric", "50", "initcwnd", "4")
	ip("-6", "route", "replace", "2001:db8::/32", "dev", "lo")
	t.Cleanup(func() {
		exec.Command("ip", "route", "flush", "10.9.0.0/16").Run()
		exec.Command("ip", "-6", "route", "del", "2001:db8::/32").Run()
	})
	before := ip("route", "show") + ip("-6", "route", "show")
	dids := must.Get(applied(cfg, Set(Route, "10.9.0.0/16 initcwnd", "20"), Set(Route, "10.9.0.0/16 window", "151840"),
		Set(Route, "10.9.0.0/16 cwnd", "30"),
		Set(Route, "10.9.0.0/16 congctl", "reno"), Set(Route, "2001:db8::/32 initrwnd", "40")))(t)
	now := ip("route", "show") + ip("-6", "route", "show")
	for _, want := range []string{"mtu lock 9000", "rto_min lock 150ms", "src 127.0.0.1", "initcwnd 20", "window 151840",
		"cwnd 30", "congctl reno", "initrwnd 40", "metric 50 initcwnd 4"} {
		want = strings.Replace(want, "rto_min lock", "rto_min", 1)
		if !strings.Contains(now, want) && !strings.Contains(now, strings.Replace(want, "cwnd 30", "cwnd lock 30", 1)) &&
			!strings.Contains(now, strings.Replace(want, "rto_min", "rto_min lock", 1)) {
			t.Errorf("no %q in\n%s", want, now)
		}
	}
	if outcomes(dids) != "changed changed changed changed changed" {
		t.Errorf("apply: %s", outcomes(dids))
	}
	must.Get(undone(cfg))(t)
	if after := ip("route", "show") + ip("-6", "route", "show"); after != before {
		t.Errorf("routes are\n%snot\n%s", after, before)
	}
}

func TestSnapshot_ThisNamespace(t *testing.T) {
	ip := exec.Command("ip", "link", "add", "dev", "up0", "mtu", "1400", "txqueuelen", "50", "type", "veth", "peer",
		"name", "up1")
	if out, err := ip.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, args := range []string{"link set lo up", "link set up0 up", "link set up1 up",
		"route add 10.8.0.0/16 dev up0 window 65536 congctl reno"} {
		if out, err := exec.Command("ip", strings.Fields(args)...).CombinedOutput(); err != nil {
			t.Fatalf("ip %s: %v: %s", args, err, out)
		}
	}
	t.Cleanup(func() { exec.Command("ip", "link", "del", "up0").Run() })
	listener := exec.Command("/proc/self/exe")
	listener.Env = append(os.Environ(), "FULLPIPE_HOST_JOB=listen")
	ready := must.Get(listener.StdoutPipe())(t)
	must.Do(t, listener.Start())
	defer func() { listener.Process.Kill(); listener.Wait() }()
	must.Get(ready.Read(make([]byte, 1)))(t)

	s := must.Get(Snapshot())(t)
	if !s.Namespace || s.System != "linux" || s.Version == "" || s.MemoryBytes < 1<<20 || s.Values[rmem] == "" {
		t.Errorf("snapshot %+v", s)
	}
	var face *audit.Interface
	for i := range s.Interfaces {
		if s.Interfaces[i].Name == "up0" {
			face = &s.Interfaces[i]
		}
	}
	if face == nil || face.MTUBytes != 1400 || face.TxQueueLen != 50 || face.Qdisc == "" || !face.Offloads["tso"] {
		t.Errorf("interfaces %+v", s.Interfaces)
	}
	if len(s.Routes) != 1 || s.Routes[0].Prefix != "10.8.0.0/16" || s.Routes[0].Attributes["window"] != "65536" ||
		s.Routes[0].Attributes["congctl"] != "reno" {
		t.Errorf("routes %+v", s.Routes)
	}
	if len(s.Sockets) != 1 || !s.Sockets[0].RecvFixed || s.Sockets[0].SendFixed || s.Sockets[0].RecvBytes != 80000 ||
		s.Sockets[0].Remote != "" {
		t.Errorf("a listener that fixed its receive buffer: %+v", s.Sockets)
	}
}

// listen keeps a listener with a receive buffer of 40,000 bytes open until it is killed.
func listen() int {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
	if err == nil {
		err = errors.Join(unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, 40000),
			unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}), unix.Listen(fd, 1))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Println("ready")
	for {
		time.Sleep(time.Hour)
	}
}

func TestSnapshot_OtherNamespaces(t *testing.T) {
	testenv.Need(t, testenv.Root)
	other := exec.Command("/proc/self/exe")
	other.Env = append(os.Environ(), "FULLPIPE_HOST_JOB=listen")
	other.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNET}
	ready := must.Get(other.StdoutPipe())(t)
	must.Do(t, other.Start())
	defer func() { other.Process.Kill(); other.Wait() }()
	must.Get(ready.Read(make([]byte, 1)))(t)
	before := raw(t)
	old := strings.Split(before, "\n")[0]
	put(t, rmem, "4096 131072 1234567")
	defer put(t, rmem, old)
	self := must.Get(os.Readlink("/proc/self/ns/net"))(t)
	for range 20 {
		values, err := valuesIn(fmt.Sprintf("/proc/%d/ns/net", other.Process.Pid))
		if err != nil || values[rmem] == "" || values[rmem] == "4096 131072 1234567" {
			t.Fatalf("%v: %v", values, err)
		}
	}
	if now, _ := os.Readlink("/proc/self/ns/net"); now != self || !strings.HasPrefix(raw(t), "4096\t131072\t1234567\n") {
		t.Errorf("this process is now in %s, was in %s", now, self)
	}
}

func TestScope(t *testing.T) {
	if scope() == "host" {
		t.Fatal("a namespace calls itself the host")
	}
	if boot := bootID(); boot == "" || !strings.Contains(scope(), strings.ReplaceAll(boot, "-", "")[:8]) {
		t.Errorf("scope %s of boot %s", scope(), boot)
	}
}

func FuzzAttributes(f *testing.F) {
	f.Add(encodeAttributes([]attribute{{1, []byte{1, 2, 3, 4}}, {16, []byte("reno\x00")}}))
	f.Fuzz(func(t *testing.T, b []byte) {
		r := &route{attributes: parseAttributes(b)}
		r.setMetric(unix.RTAX_WINDOW, []byte{1, 2, 3, 4})
		r.prefix()
		encodeAttributes(r.attributes)
	})
}

func TestRaised(t *testing.T) {
	put(t, rmem, "8192 262144 99999999")
	t.Cleanup(func() { put(t, rmem, "4096 131072 6291456") })
	settings := []plan.Setting{
		{Name: rmem, Where: "/proc/sys/net/ipv4/tcp_rmem", Type: "min default max", Value: "4096 131072 25034752"},
		{Name: wmem, Where: "/proc/sys/net/ipv4/tcp_wmem", Type: "min default max", Value: "1 2 25034752"},
		{Name: sack, Where: "/proc/sys/net/ipv4/tcp_sack", Type: "boolean", Value: "1"},
	}
	changes := must.Get(Changes(settings, ""))(t)
	dids := must.Get(Preview(config(t), changes))(t)
	if *dids[0].New != "8192 262144 99999999" || dids[0].Outcome != Unchanged || !strings.HasSuffix(*dids[1].New,
		" 25034752") ||
		strings.HasPrefix(*dids[1].New, "1 ") {
		t.Errorf("%+v", dids)
	}
	for _, s := range []plan.Setting{{Name: "AutoTuningLevelLocal", Where: "Set-NetTCPSetting", Value: "Normal"},
		{Name: "window", Where: "ip route change", Value: "1"}} {
		var unsettable *UnsettableError
		if _, err := Changes([]plan.Setting{s}, ""); !errors.As(err, &unsettable) {
			t.Errorf("%s: %v", s.Name, err)
		}
	}
	if _, err := Persist(changes); err == nil {
		t.Error("a namespace's settings were to persist")
	}
}

func TestWithoutNames(t *testing.T) {
	theirs, ours := "# theirs\nnet.core.somaxconn = 4096\n", "# theirs\nnet.core.somaxconn = 4096\n"+rmem+" = 1 2 3\n"+
		wmem+" = 4 5 6\n"
	file := &Record{Kind: File, Name: PersistFile, Old: &theirs, New: &ours}
	if got := withoutNames(file, []string{wmem}); *got != "# theirs\nnet.core.somaxconn = 4096\n"+rmem+" = 1 2 3\n" {
		t.Errorf("without %s: %q", wmem, *got)
	}
	if got := withoutNames(file, []string{wmem, rmem}); got != &theirs {
		t.Errorf("without both: %q", Text(got))
	}
	file.Old = nil
	alone := "# Written by fullpipe\n" + wmem + " = 4 5 6\n"
	file.New = &alone
	if got := withoutNames(file, []string{wmem}); got != nil {
		t.Errorf("the file was ours alone: %q", Text(got))
	}
}

func FuzzChanges(f *testing.F) {
	f.Add(rmem, "/proc/sys/net/ipv4/tcp_rmem", "min default max", "4096 131072 25034752", "")
	f.Add("initcwnd", "ip route change", "integer", "20", "10.0.0.0/8")
	f.Add("../../kernel/core_pattern", "/proc/sys/", "boolean", "|x", "default")
	f.Fuzz(func(t *testing.T, name, where, kind, value, prefix string) {
		cfg := Config{}.complete()
		changes, err := cfg.changes([]plan.Setting{{Name: name, Where: where, Type: kind, Value: value}}, prefix)
		if err != nil {
			return
		}
		if _, err := Preview(cfg, changes); err == nil && changes[0].Kind == Sysctl && !strings.HasPrefix(changes[0].Name,
			"net.") {
			t.Errorf("%q may be changed", changes[0].Name)
		}
	})
}
