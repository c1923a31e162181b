package sockops

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/fullpipe-net/fullpipe/internal/testenv"
	"github.com/fullpipe-net/fullpipe/internal/testenv/must"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

func TestMain(m *testing.M) {
	Supervisor()
	if job := os.Getenv("STEER_TEST_JOB"); job != "" {
		jobs[job]()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// jobs are programs to steer, or that steer; this test binary runs them.
var jobs = map[string]func(){
	"own-buffers": func() {
		for _, s := range []struct{ kind, protocol int }{{unix.SOCK_STREAM, 0}, {unix.SOCK_STREAM, unix.IPPROTO_MPTCP},
			{unix.SOCK_DGRAM, 0}} {
			fd, err := unix.Socket(unix.AF_INET, s.kind, s.protocol)
			if errors.Is(err, unix.EPROTONOSUPPORT) || errors.Is(err, unix.ENOPROTOOPT) { // a kernel without MPTCP
				fd, err = unix.Socket(unix.AF_INET, s.kind, 0)
			}
			check(err)
			before, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF)
			check(err)
			check(unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, 30000))
			reported, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF)
			check(err)
			const memReceive = 1      // SK_MEMINFO_RCVBUF
			info := make([]uint32, 9) // SO_MEMINFO is not faked
			length := uint32(len(info) * 4)
			_, _, errno := unix.Syscall6(unix.SYS_GETSOCKOPT, uintptr(fd), unix.SOL_SOCKET, unix.SO_MEMINFO,
				uintptr(ptr(info)), uintptr(ptr([]uint32{length})), 0)
			if errno != 0 {
				check(errno)
			}
			fmt.Println(reported, int(info[memReceive]) == before)
		}
	},
	"steer-and-wait": func() {
		cmd := exec.Command("setsid", "sh", "-c", "echo $$; exec sleep 60")
		cmd.Stdout = os.Stdout
		_, err := Run(context.Background(), cmd, Config{})
		check(err)
	},
	"steer-nothing": func() {
		_, err := Run(context.Background(), exec.Command("true"), Config{})
		fmt.Printf("%T %v\n", err, err)
	},
}

func check(err error) {
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}

func job(name string) *exec.Cmd {
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), "STEER_TEST_JOB="+name)
	return cmd
}

// steeringNeeds lists the requirements of steering.
var steeringNeeds = []testenv.Feature{testenv.Root, testenv.BPF, testenv.Cgroup}

func freePort(t *testing.T) string {
	t.Helper()
	return strconv.Itoa(testenv.FreePort(t, 1))
}

func iperf3Server(t *testing.T) (port string) {
	t.Helper()
	port = freePort(t)
	cmd := exec.Command("iperf3", "-s", "--forceflush", "-p", port)
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	seen := ""
	for buf := make([]byte, 4096); !strings.Contains(seen, "Server listening"); {
		n, err := out.Read(buf)
		if err != nil {
			t.Fatalf("iperf3 server: %v", err)
		}
		seen += string(buf[:n])
	}
	return port
}

func steered(t *testing.T, cmd *exec.Cmd, cfg Config) (*Report, string) {
	t.Helper()
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	report := must.Get(Run(context.Background(), cmd, cfg))(t)
	if !cmd.ProcessState.Success() || report.Refused != nil || len(report.Failures) > 0 {
		t.Fatalf("%v: %v, refused %v, failures %v\n%s", cmd, cmd.ProcessState, report.Refused, report.Failures, &out)
	}
	return report, out.String()
}

// heaviest returns the connection with the most payload.
func heaviest(t *testing.T, r *Report) *Connection {
	t.Helper()
	var best *Connection
	for i := range r.Connections {
		if c := &r.Connections[i]; best == nil ||
			sent(c.last())+received(c.last()) > sent(best.last())+received(best.last()) {
			best = c
		}
	}
	if best == nil {
		t.Fatal("no connection was seen")
	}
	return best
}

func TestRun_OutgoingConnections(t *testing.T) {
	testenv.Need(t, append(steeringNeeds, testenv.Iperf3)...)
	port := iperf3Server(t)
	for _, tt := range []struct {
		name          string
		args          []string
		cfg           Config
		send, receive int // granted; 0: automatic
		congestion    string
		rule          int
		asked         int
	}{
		{"a rule for all", nil, Config{Rules: []Rule{{Socket: transfer.Socket{SendBuffer: 100_000, ReceiveBuffer: 50_000,
			Congestion: "reno"}}}},
			200_000, 100_000, "reno", 0, 0},
		{"the longest prefix", nil, Config{Rules: []Rule{
			{Socket: transfer.Socket{SendBuffer: 100_000}},
			{To: netip.MustParsePrefix("127.0.0.0/8"), Socket: transfer.Socket{SendBuffer: 80_000}},
			{To: netip.MustParsePrefix("127.0.0.1/32"), Socket: transfer.Socket{SendBuffer: 60_000}},
			{To: netip.MustParsePrefix("::1/128"), Socket: transfer.Socket{SendBuffer: 40_000}}}},
			120_000, 0, "", 2, 0},
		{"a rule for others", nil,
			Config{Rules: []Rule{{To: netip.MustParsePrefix("10.0.0.0/8"), Socket: transfer.Socket{SendBuffer: 80_000}}}},
			0, 0, "", -1, 0},
		{"the program's own", []string{"-w", "90K"}, Config{}, 2 * 90 << 10, 2 * 90 << 10, "", -1, 90 << 10},
		{"the rule wins over the program", []string{"-w", "90K"},
			Config{Rules: []Rule{{Socket: transfer.Socket{SendBuffer: 100_000}}}},
			200_000, 2 * 90 << 10, "", 0, 90 << 10},
		{"the program's own ignored", []string{"-w", "90K"}, Config{IgnoreProgramBuffers: true}, 0, 0, "", -1, 90 << 10},
		{"beyond the ceilings", nil,
			Config{Rules: []Rule{{Socket: transfer.Socket{SendBuffer: 16 << 20, ReceiveBuffer: 40 << 20}}}},
			32 << 20, 80 << 20, "", 0, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cmd := exec.Command("iperf3", append([]string{"-c", "127.0.0.1", "-p", port, "-n", "300K", "-b", "8M"},
				tt.args...)...)
			report, _ := steered(t, cmd, tt.cfg)
			c := heaviest(t, report)
			if !c.Opened || c.Rule != tt.rule || c.Stream.Remote.String() != "127.0.0.1:"+port || len(report.Connections) != 2 {
				t.Errorf("%d connections, with the most payload %+v", len(report.Connections), c)
			}
			send, receive := c.Stream.SendBuffer, c.Stream.ReceiveBuffer
			if tt.send > 0 && send.Granted != tt.send || tt.send == 0 && !send.Automatic() || send.Clipped {
				t.Errorf("send buffer %+v, want %d granted", send, tt.send)
			}
			if tt.receive > 0 && receive.Granted != tt.receive || tt.receive == 0 && !receive.Automatic() || receive.Clipped {
				t.Errorf("receive buffer %+v, want %d granted", receive, tt.receive)
			}
			if tt.congestion != "" && c.Stream.Congestion != tt.congestion {
				t.Errorf("congestion control %q, want %q", c.Stream.Congestion, tt.congestion)
			}
			if c.AskedSend != tt.asked || c.AskedReceive != tt.asked {
				t.Errorf("the program asked for %d and %d, want %d", c.AskedSend, c.AskedReceive, tt.asked)
			}
			if sent(c.last()) < 200<<10 || received(c.last()) != 0 || !c.Final || c.Lasted <= 0 {
				t.Errorf("sent %d, received %d, final %v, lasted %v", sent(c.last()), received(c.last()), c.Final, c.Lasted)
			}
			up := c.Result(transfer.Up, transfer.Socket{})
			if up == nil || up.Near.Streams[0].Bytes != sent(c.last()) || c.Result(transfer.Down, transfer.Socket{}) != nil {
				t.Errorf("result upwards %+v", up)
			}
		})
	}
}

// TestRun_CongestionOverRoute checks that a rule's congestion control replaces that of the route, which the kernel sets
// at connect().
func TestRun_CongestionOverRoute(t *testing.T) {
	testenv.Need(t, append(steeringNeeds, testenv.Iperf3, testenv.NetworkNamespace)...)
	if !testenv.Inside(t, unix.CLONE_NEWNET) {
		return
	}
	route := &netlink.Route{Dst: netlink.NewIPNet(net.IPv4(127, 0, 0, 1)), LinkIndex: 1, Table: unix.RT_TABLE_LOCAL,
		Type: unix.RTN_LOCAL, Scope: netlink.SCOPE_HOST, Congctl: "cubic"}
	must.Do(t, netlink.RouteReplace(route))
	port := iperf3Server(t)
	for _, want := range []string{"cubic", "reno"} {
		cfg := Config{}
		if want != route.Congctl {
			cfg.Rules = []Rule{{Socket: transfer.Socket{Congestion: want}}}
		}
		report, _ := steered(t, exec.Command("iperf3", "-c", "127.0.0.1", "-p", port, "-n", "100K"), cfg)
		if got := heaviest(t, report).Stream.Congestion; got != want {
			t.Errorf("congestion control %q, want %q", got, want)
		}
	}
}

// TestRun_WindowScale checks that the buffer is set before the SYN.
func TestRun_WindowScale(t *testing.T) {
	testenv.Need(t, append(steeringNeeds, testenv.Iperf3)...)
	port := iperf3Server(t)
	for receive, want := range map[int]int{30_000: 0, 400_000: 3} {
		cmd := exec.Command("iperf3", "-c", "127.0.0.1", "-p", port, "-n", "100K")
		report, _ := steered(t, cmd, Config{Rules: []Rule{{Socket: transfer.Socket{ReceiveBuffer: receive}}}})
		if c := heaviest(t, report); c.Stream.Handshake == nil || c.Stream.Handshake.ReceiveScale != want {
			t.Errorf("receive buffer %d: handshake %+v, want scale %d", receive, c.Stream.Handshake, want)
		}
	}
}

// TestRun_ServerAndClient steers nginx and curl at once: accepted connections have the listener's rule, curl's another
// one.
func TestRun_ServerAndClient(t *testing.T) {
	testenv.Need(t, append(steeringNeeds, testenv.Nginx, testenv.Curl)...)
	dir, port := t.TempDir(), freePort(t)
	write(t, filepath.Join(dir, "file"), make([]byte, 2<<20))
	write(t, filepath.Join(dir, "nginx.conf"), fmt.Appendf(nil, `
daemon off; master_process off; pid %[1]s/pid; error_log %[1]s/error;
events {}
http { access_log off; client_body_temp_path %[1]s/a; proxy_temp_path %[1]s/b; fastcgi_temp_path %[1]s/c; uwsgi_temp_path %[1]s/d;
 scgi_temp_path %[1]s/e; server { listen 127.0.0.1:%[2]s; root %[1]s; } }`, dir, port))
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	type outcome struct {
		report *Report
		err    error
	}
	server := make(chan outcome, 1)
	nginx := exec.Command("nginx", "-c", filepath.Join(dir, "nginx.conf"), "-e", filepath.Join(dir, "error"))
	go func() {
		r, err := Run(ctx, nginx, Config{Rules: []Rule{{Socket: transfer.Socket{SendBuffer: 70_000, ReceiveBuffer: 20_000,
			Congestion: "reno"}}}})
		server <- outcome{r, err}
	}()
	curl := exec.Command("curl", "-sS", "--retry", "50", "--retry-connrefused", "--retry-delay", "0", "--retry-max-time",
		"20",
		"-o", filepath.Join(dir, "got"), "http://127.0.0.1:"+port+"/file")
	report, _ := steered(t, curl, Config{Rules: []Rule{{Socket: transfer.Socket{ReceiveBuffer: 200_000}}}})
	got := heaviest(t, report)
	if !got.Opened || received(got.last()) < 2<<20 || got.Stream.ReceiveBuffer.Granted != 400_000 {
		t.Errorf("curl: received %d, %+v", received(got.last()), got)
	}
	stop()
	o := <-server
	if o.err != nil {
		t.Fatal(o.err)
	}
	served := heaviest(t, o.report)
	if served.Opened || sent(served.last()) < 2<<20 || served.Stream.SendBuffer.Granted != 140_000 ||
		served.Stream.ReceiveBuffer.Granted != 40_000 || served.Stream.Congestion != "reno" ||
		served.Stream.Handshake.ReceiveScale != 0 {
		t.Errorf("nginx: sent %d, %+v, %+v", sent(served.last()), served, served.Stream.Handshake)
	}
}

func write(t *testing.T, name string, content []byte) {
	t.Helper()
	must.Do(t, os.WriteFile(name, content, 0o644))
}

func TestIgnoreProgramBuffers_ReportsRequestedSize(t *testing.T) {
	testenv.Need(t, steeringNeeds...)
	_, out := steered(t, job("own-buffers"), Config{IgnoreProgramBuffers: true})
	if want := "60000 true\n60000 true\n60000 false\n"; out != want {
		t.Errorf("TCP, MPTCP, then UDP (reported size, kernel's size unchanged): %q, want %q", out, want)
	}
}

func TestRun_WithoutPrivilege(t *testing.T) {
	testenv.Need(t, steeringNeeds...)
	cmd := job("steer-nothing")
	exe := must.Get(os.Executable())(t)
	copied := filepath.Join(t.TempDir(), "steer.test")
	for _, dir := range []string{filepath.Dir(copied), filepath.Dir(filepath.Dir(copied))} { // both belong to this test
		must.Do(t, os.Chmod(dir, 0o755))
	}
	binary := must.Get(os.ReadFile(exe))(t)
	must.Do(t, os.WriteFile(copied, binary, 0o755))
	cmd.Path, cmd.Dir = copied, "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "*sockops.NotPermitted") {
		t.Errorf("%v: %s", err, out)
	}
}
