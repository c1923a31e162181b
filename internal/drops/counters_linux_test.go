package drops

import (
	"net"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/fullpipe-net/fullpipe/internal/lost"
	"github.com/fullpipe-net/fullpipe/internal/testenv"
)

func TestReadPairs(t *testing.T) {
	all := snapshot{}
	readPairs(all, "TcpExt: RcvPruned TCPBacklogDrop Unknown\nTcpExt: 3 7 9\n"+
		"Udp: InDatagrams RcvbufErrors\nUdp: 5 2\nIp: X\n")
	for name, want := range map[string]uint64{"TcpExtRcvPruned": 3, "TcpExtTCPBacklogDrop": 7, "UdpRcvbufErrors": 2} {
		if got := all[counterKey{name: name}].packets; got != want {
			t.Errorf("%s: %d, want %d", name, got, want)
		}
	}
	if len(all) != 3 {
		t.Errorf("%+v", all)
	}
}

func TestAddHex(t *testing.T) {
	all := snapshot{}
	addHex(all, counterKey{name: "x"}, lost.CPUBacklog, []byte("a b c\n00 10 02\n00 0a 01\n"), true, 1, 2)
	if got := all[counterKey{name: "x"}].packets; got != 0x1a+3 {
		t.Errorf("%#x", got)
	}
}

// TestReadCounters_Rules reads rules that drop in the real kernel: a base chain's, one reached by a jump, one without a
// counter, and one that counts only.
func TestReadCounters_Rules(t *testing.T) {
	testenv.Need(t, testenv.Root, testenv.NetworkNamespace, testenv.NFT)
	if !testenv.Inside(t, unix.CLONE_NEWNET) {
		return
	}
	shell(t, `ip link set lo up
		nft 'add table inet t; add chain inet t in { type filter hook input priority 0; }; add chain inet t sub;
		add rule inet t in udp dport 7 counter drop; add rule inet t in udp dport 8 drop;
		add rule inet t in udp dport 9 counter accept; add rule inet t in udp dport 10 jump sub;
		add rule inet t sub counter reject'`)
	all := snapshot{}
	readRules(all)
	found := map[string]lost.Counter{}
	for key, c := range all {
		found[key.rule[:strings.Index(key.rule, " handle")]] = c.Counter
	}
	input := lost.Netfilter
	input.Sends = false
	if len(all) != 2 || found["inet t in"] != input || found["inet t sub"] != lost.Netfilter {
		t.Errorf("%+v", all)
	}
	c := Count()
	defer c.Stop()
	socket, err := net.Dial("udp", "127.0.0.1:7")
	if err == nil {
		_, err = socket.Write([]byte("x"))
	}
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	c.Stop()
	moved := c.Moved(lost.UDP, false)
	if len(moved) != 1 || moved[0].Packets == 0 || moved[0].Bytes != 29*moved[0].Packets || moved[0].Place != "firewall" ||
		!strings.HasPrefix(moved[0].Rule, "inet t in handle ") {
		t.Errorf("%+v", moved)
	}
}
