package host

import (
	"fmt"
	"net"
	"net/netip"
	"os/exec"
	"strings"
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/testenv/must"
)

// run returns the output of a command.
func run(t *testing.T, command string) string {
	t.Helper()
	args := strings.Fields(command)
	out, err := exec.Command(args[0], args[1:]...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v: %s", command, err, out)
	}
	return string(out)
}

func shapedPair(t *testing.T) {
	t.Helper()
	run(t, "ip link add dev shape0 type veth peer name shape1")
	t.Cleanup(func() { exec.Command("ip", "link", "del", "shape0").Run() })
	for _, args := range []string{"addr add 10.8.0.1/24 dev shape0", "-6 addr add 2001:db8:8::1/64 dev shape0 nodad",
		"link set shape0 up", "link set shape1 up", "neigh add 10.8.0.2 lladdr 02:00:00:00:00:02 dev shape0",
		"neigh add 10.8.0.3 lladdr 02:00:00:00:00:03 dev shape0",
		"-6 neigh add 2001:db8:8::2 lladdr 02:00:00:00:00:02 dev shape0"} {
		run(t, "ip "+args)
	}
}

// sent returns the packets of our class after one datagram to each address.
func sent(t *testing.T, to ...string) (packets int) {
	t.Helper()
	for _, address := range to {
		c := must.Get(net.Dial("udp", net.JoinHostPort(address, "9")))(t)
		must.Get(c.Write(make([]byte, 100)))(t)
		c.Close()
	}
	stats := run(t, "tc -s class show dev shape0")
	_, counts, _ := strings.Cut(stats, "Sent ")
	var bytes int
	_, err := fmt.Sscanf(counts, "%d bytes %d pkt", &bytes, &packets)
	if err != nil || strings.Count(stats, "Sent ") != 1 {
		t.Fatalf("%v in\n%s", err, stats)
	}
	return packets
}

// TestQdiscStore_Shaper checks that a shaper limits only packets to its prefix, and that undo restores the queue.
func TestQdiscStore_Shaper(t *testing.T) {
	for _, c := range []struct{ to, other, prefix string }{{"10.8.0.2", "10.8.0.3", "10.8.0.2/32"},
		{"2001:db8:8::2", "10.8.0.3", "2001:db8:8::2/128"}} {
		cfg := config(t)
		shapedPair(t)
		before := run(t, "tc -j qdisc show dev shape0")
		name, err := ShaperTo(netip.MustParseAddr(c.to))
		if err != nil || name != "shape0 to "+c.prefix {
			t.Fatalf("%q, %v", name, err)
		}
		if dids := must.Get(applied(cfg, Set(Qdisc, name, "8000000")))(t); outcomes(dids) != "changed" {
			t.Fatalf("%+v", dids)
		}
		if n := sent(t, c.to, c.other, c.to); n != 2 {
			t.Errorf("%s: %d of 2 datagrams passed the shaper", c.to, n)
		}
		if got := run(t, "tc class show dev shape0"); !strings.Contains(got, "rate 8Mbit ceil 8Mbit") {
			t.Errorf("%s", got)
		}
		must.Get(applied(cfg, Set(Qdisc, name, "6000000000")))(t) // past 32 bits of bytes a second
		if _, err := applied(cfg, Set(Qdisc, "shape0 to 10.8.0.3/32", "8000000")); err == nil {
			t.Error("one shaper replaced another")
		}
		must.Get(undone(cfg))(t)
		if after := run(t, "tc -j qdisc show dev shape0"); after != before {
			t.Errorf("queues are %s, not %s", after, before)
		}
		run(t, "ip link del shape0")
	}
}

// TestQdiscStore_KeepsConfiguredQueue checks that a shaper does not replace a configured queue.
func TestQdiscStore_KeepsConfiguredQueue(t *testing.T) {
	cfg := config(t)
	shapedPair(t)
	run(t, "tc qdisc replace dev shape0 root tbf rate 5mbit burst 32k latency 50ms")
	before := run(t, "tc -j qdisc show dev shape0")
	if _, err := applied(cfg, Set(Qdisc, "shape0 to 10.8.0.2/32", "8000000")); err == nil ||
		!strings.Contains(err.Error(), "is configured") {
		t.Errorf("%v", err)
	}
	if after := run(t, "tc -j qdisc show dev shape0"); after != before {
		t.Errorf("queues are %s, not %s", after, before)
	}
}

// TestRouteStore_RestoresRemedies checks that undo restores every route attribute that a remedy sets.
func TestRouteStore_RestoresRemedies(t *testing.T) {
	cfg := config(t)
	shapedPair(t)
	run(t, "ip route add 10.77.0.0/16 via 10.8.0.2 dev shape0 mtu 1400 initcwnd 12")
	run(t, "ip -6 route add 2001:db8:77::/48 via 2001:db8:8::2 dev shape0")
	before := run(t, "ip -j route") + run(t, "ip -6 -j route show dev shape0")
	for _, prefix := range []string{"10.77.0.0/16", "2001:db8:77::/48"} {
		var changes []Change
		for attribute, value := range map[string]string{"congctl": "reno", "initcwnd": "40", "initrwnd": "44",
			"rto_min": "50",
			"advmss":  "1200", "quickack": "1", "cwnd": "60", "window": "100000"} {
			changes = append(changes, Set(Route, prefix+" "+attribute, value))
		}
		dids := must.Get(applied(cfg, changes...))(t)
		if got := outcomes(dids); strings.Count(got, "changed") != len(changes) || strings.Contains(got, "un") {
			t.Errorf("%s: %s", prefix, got)
		}
	}
	now := run(t, "ip route") + run(t, "ip -6 route")
	for _, want := range []string{"congctl reno", "initcwnd 40", "initrwnd 44", "rto_min", "advmss 1200", "quickack 1"} {
		if strings.Count(now, want) != 2 {
			t.Errorf("no %q on both in\n%s", want, now)
		}
	}
	must.Get(undone(cfg))(t)
	if after := run(t, "ip -j route") + run(t, "ip -6 -j route show dev shape0"); after != before {
		t.Errorf("routes are\n%s, not\n%s", after, before)
	}
}
