package drops

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/fullpipe-net/fullpipe/internal/lost"
	"github.com/fullpipe-net/fullpipe/internal/testenv"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

const farVariable = "FULLPIPE_TEST_FAR"

// far serves in another network namespace: port 7000 discards, port 7001 sends.
func far() {
	_, _ = bufio.NewReader(os.Stdin).ReadString('\n') // the addresses are set
	serve := func(address string, each func(net.Conn)) {
		l, err := net.Listen("tcp", address)
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				go func() { each(c); c.Close() }()
			}
		}()
	}
	serve("[::]:7000", func(c net.Conn) { _, _ = io.Copy(io.Discard, c) })
	serve("[::]:7001", func(c net.Conn) { _, _ = c.Write(make([]byte, payload)); _, _ = c.Read(make([]byte, 1)) })
	fmt.Println("ready")
	_, _ = io.Copy(io.Discard, os.Stdin) // until the test ends
}

const payload = 4 << 20

func TestMain(m *testing.M) {
	if os.Getenv(farVariable) != "" {
		far()
		return
	}
	os.Exit(m.Run())
}

// startFar starts the far end, joined by a pair of veth devices, near and far0.
func startFar(t *testing.T) (farPID int) {
	t.Helper()
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), farVariable+"=1")
	cmd.SysProcAttr = testenv.Namespaces(unix.CLONE_NEWNET)
	cmd.SysProcAttr.Pdeathsig = 0 // it is about a thread, and the pipe ends it
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = in.Close(); _ = cmd.Wait() })
	pid := cmd.Process.Pid
	shell(t, fmt.Sprintf(`ip link add near type veth peer name far0 netns %d
		ip addr add 10.9.0.1/24 dev near; ip addr add fd09::1/64 dev near nodad
		ip link set near up`, pid))
	shell(t, fmt.Sprintf(`nsenter -t %d -n sh -ec 'ip addr add 10.9.0.2/24 dev far0; ip addr add fd09::2/64 dev far0 nodad
		ip link set lo up; ip link set far0 up'`, pid))
	_, _ = io.WriteString(in, "start\n")
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "ready\n" {
		t.Fatalf("%q, %v", line, err)
	}
	return pid
}

func shell(t *testing.T, script string) {
	t.Helper()
	if out, err := exec.Command("sh", "-ec", script).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v: %s", script, err, out)
	}
}

// send transfers the payload over a new connection and returns the counts of its data.
func send(t *testing.T, w *Watch, address string, down bool) transfer.Losses {
	t.Helper()
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	flow := lost.Flow{Source: netip.MustParseAddrPort(c.LocalAddr().String()),
		Destination: netip.MustParseAddrPort(c.RemoteAddr().String())}
	if down {
		flow.Source, flow.Destination = flow.Destination, flow.Source
		if _, err := io.CopyN(io.Discard, c, payload); err != nil {
			t.Fatal(err)
		}
	} else {
		if _, err := c.Write(make([]byte, payload)); err != nil {
			t.Fatal(err)
		}
		_ = c.(*net.TCPConn).CloseWrite() // the far end closes when it has everything
		_, _ = c.Read(make([]byte, 1))
	}
	counts, err := w.Take(flow, 0)
	if err != nil || counts.Incomplete {
		t.Fatalf("%+v, %v", counts, err)
	}
	return counts
}

// TestWatch drops packets at known places of the real kernel.
func TestWatch(t *testing.T) {
	testenv.Need(t, testenv.Root, testenv.BPF, testenv.NetworkNamespace, testenv.NFT)
	if !testenv.Inside(t, unix.CLONE_NEWNET) {
		return
	}
	pid := startFar(t)
	w, err := Open()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	nft := func(hook, match string) string {
		return fmt.Sprintf(`nft 'add table inet t; add chain inet t c { type filter hook %s priority 0; };
			add rule inet t c %s numgen inc mod 20 < 1 drop'`, hook, match)
	}
	const tbf = "tc qdisc add dev near root tbf rate 80mbit burst 20kb limit 40kb"
	inFar := fmt.Sprintf("nsenter -t %d -n ", pid)
	for _, tt := range []struct {
		name, begin, end, address string
		down                      bool
		want                      lost.Kind // "": dropped elsewhere
		reason, device            string
	}{
		{"the sender's firewall", nft("output", "tcp dport 7000"), "nft delete table inet t", "10.9.0.2:7000", false,
			lost.Firewall, "NETFILTER_DROP", ""},
		{"the sender's queue", tbf, "tc qdisc del dev near root", "10.9.0.2:7000", false,
			lost.Queue, "QDISC_DROP", "near"},
		{"the sender's queue, IPv6", tbf, "tc qdisc del dev near root", "[fd09::2]:7000", false,
			lost.Queue, "QDISC_DROP", "near"},
		{"a bridge's port, which TCP does not hear of", `ip addr flush dev near; ip link add br0 type bridge
			ip link set near master br0; ip link set br0 up; ip addr add 10.9.0.1/24 dev br0
			` + tbf, `ip link del br0; ip addr add 10.9.0.1/24 dev near; ip addr add fd09::1/64 dev near nodad
			tc qdisc del dev near root`, "10.9.0.2:7000", false, lost.Queue, "QDISC_DROP", "near"},
		{"refused here, and lost at the far end",
			nft("output", "tcp dport 7000 tcp flags & syn == 0") + "\n" + inFar + nft("input", "tcp dport 7000"),
			"nft delete table inet t; " + inFar + "nft delete table inet t", "10.9.0.2:7000", false,
			lost.Firewall, "NETFILTER_DROP", ""},
		{"the far end's firewall", inFar + nft("input", "tcp dport 7000"), inFar + "nft delete table inet t",
			"10.9.0.2:7000", false, "", "", ""},
		{"this host's firewall, receiving", nft("input", "tcp sport 7001"), "nft delete table inet t", "10.9.0.2:7001", true,
			lost.Firewall, "NETFILTER_DROP", "near"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			shell(t, tt.begin)
			defer shell(t, tt.end)
			c := send(t, w, tt.address, tt.down)
			t.Logf("%+v", c)
			// The sender's firewall refuses packets inside the call that transmits them: TCP knows, and keeps them unsent.
			if refused := tt.want == lost.Firewall; !refused && (!c.Retransmits || c.Segments == 0) {
				t.Errorf("retransmissions by this host: %v, %d segments", c.Retransmits, c.Segments)
			}
			if tt.want == "" {
				if len(c.Places) > 0 {
					t.Errorf("a place of the other namespace counts as this host's: %+v", c.Places)
				}
				return
			}
			if len(c.Places) != 1 {
				t.Fatalf("%d places", len(c.Places))
			}
			p := c.Places[0]
			if lost.KindOf(p.Reason) != tt.want || p.Reason != tt.reason || p.Device != tt.device || p.Forwarded ||
				p.Dropped == 0 {
				t.Errorf("%+v", p)
			}
			if lacks := c.Bytes - p.Bytes; tt.want == lost.Queue && lacks > c.Bytes/10 {
				t.Errorf("%d of %d retransmitted bytes are not explained", lacks, c.Bytes)
			}
			// TCP knows that the packet was refused, except for a SYN.
			if refused := tt.want == lost.Firewall && !tt.down; refused && p.Bytes > 1 {
				t.Errorf("refused packets explain retransmissions: %+v", p)
			}
			// A busy host also retransmits needlessly.
			const needless = 4 // of the tail, by a probe or a timer that an acknowledgement came just too late for
			if tt.want == lost.Queue && c.Segments-p.Segments > needless+c.Segments/20 {
				t.Errorf("%d of %d segments, %d of %d bytes are explained", p.Segments, c.Segments, p.Bytes, c.Bytes)
			}
		})
	}
}

// TestWatch_Datagrams drops the fourth part of the datagrams at this host's firewall.
func TestWatch_Datagrams(t *testing.T) {
	testenv.Need(t, testenv.Root, testenv.BPF, testenv.NetworkNamespace, testenv.NFT)
	if !testenv.Inside(t, unix.CLONE_NEWNET) {
		return
	}
	shell(t, `ip link set lo up
		nft 'add table inet t; add chain inet t c { type filter hook input priority 0; };
		add rule inet t c udp dport 7000 numgen inc mod 4 < 1 drop'`)
	receiver, err := net.ListenPacket("udp", "127.0.0.1:7000")
	if err != nil {
		t.Fatal(err)
	}
	defer receiver.Close()
	for _, udp := range []bool{true, false} {
		w, err := map[bool]func() (*Watch, error){true: OpenUDP, false: Open}[udp]()
		if err != nil {
			t.Fatal(err)
		}
		defer w.Close()
		end := w.BeginDatagrams()
		sender, err := net.Dial("udp", "127.0.0.1:7000")
		if err != nil {
			t.Fatal(err)
		}
		defer sender.Close()
		for range 100 {
			if _, err := sender.Write(make([]byte, 100)); err != nil {
				t.Fatal(err)
			}
		}
		at := netip.MustParseAddrPort(sender.LocalAddr().String())
		r := &transfer.DatagramResult{Flows: []transfer.Addresses{
			{Local: at, Remote: netip.MustParseAddrPort("127.0.0.1:7000")}}}
		r.Spec.Direction = transfer.Up
		l := end(r)
		switch {
		case !udp && l != nil:
			t.Errorf("a Watch of TCP knows datagrams: %+v", l)
		case udp && (l == nil || len(l.Places) != 1 || l.Places[0].Reason != "NETFILTER_DROP" || l.Places[0].Packets != 25 ||
			l.Places[0].Dropped != 2500):
			t.Errorf("%+v", l)
		}
	}
}

func TestWatch_ReleasesEverything(t *testing.T) {
	testenv.Need(t, testenv.BPF)
	before := descriptors(t)
	for range 3 {
		w, err := Open()
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Error(err)
		}
		if err := w.Close(); err != nil {
			t.Errorf("closed twice: %v", err)
		}
		if _, err := w.Take(lost.Flow{}, 0); err == nil {
			t.Error("a closed Watch has counts")
		}
	}
	if after := descriptors(t); after != before {
		t.Errorf("%d eBPF descriptors before, %d after", before, after)
	}
}

// descriptors returns how many programs, maps and links this process has open.
func descriptors(t *testing.T) (n int) {
	t.Helper()
	files, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		to, _ := os.Readlink("/proc/self/fd/" + f.Name())
		if strings.Contains(to, "bpf") {
			n++
		}
	}
	return n
}
