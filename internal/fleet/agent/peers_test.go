package agent

import (
	"net/netip"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/fleet/bus"
	"github.com/fullpipe-net/fullpipe/internal/fleet/mesh"
)

func prefixes(texts ...string) (all []netip.Prefix) {
	for _, text := range texts {
		all = append(all, netip.MustParsePrefix(text))
	}
	return all
}

// TestIsPeer checks that an order sends an agent to unicast addresses only.
func TestIsPeer(t *testing.T) {
	n := network{interfaces: prefixes("10.1.2.3/22", "192.0.2.9/30", "198.51.100.4/31", "127.0.0.1/8", "203.0.113.7/32",
		"2001:db8:1::7/64", "fe80::1/64", "fd00::1/127")}
	for text, want := range map[string]bool{
		"10.1.2.4": true, "10.1.3.254": true, "10.1.4.255": true, "192.0.2.10": true, "198.51.100.5": true, "8.8.8.8": true,
		"2001:db8:1::8": true, "2001:db8:2::": true, "fd00::": true, "203.0.113.255": true,
		"10.1.3.255": false, "10.1.0.0": false, "192.0.2.11": false, "192.0.2.8": false, "255.255.255.255": false,
		"0.0.0.0": false, "0.1.2.3": false, "240.0.0.1": false, "224.0.0.251": false, "127.0.0.1": false, "::1": false,
		"127.255.255.254": false, "169.254.169.254": false, "fe80::2": false, "fe80::2%eth0": false, "ff02::1": false,
		"ff02::1%lo": false, "::": false, "2001:db8:1::": false, "::ffff:10.1.3.255": false, "::ffff:127.0.0.1": false,
		"::ffff:224.0.0.1": false,
	} {
		if got := n.isPeer(netip.MustParseAddr(text)); got != want {
			t.Errorf("%s: %v, want %v", text, got, want)
		}
	}
	if n.isPeer(netip.Addr{}) {
		t.Error("no address is taken for a peer")
	}
}

// TestRestrictPeers checks that this host's own addresses are left out, and that an order without another host's, or to
// several ports, is refused.
func TestRestrictPeers(t *testing.T) {
	n := network{announced: []netip.Addr{netip.MustParseAddr("192.0.2.9")}, interfaces: prefixes("10.1.2.3/22",
		"172.17.0.1/16", "2001:db8:1::7/64")}
	for _, c := range []struct {
		peers   []string
		left    int
		refused bool
	}{
		{peers: []string{"10.1.2.4:5201", "172.17.0.1:5201", "[2001:db8:1::8]:5201"}, left: 2},
		{peers: []string{"172.17.0.1:5201"}, refused: true},
		{peers: []string{"192.0.2.9:5201", "[::ffff:10.1.2.3]:5201", "[2001:db8:1::7]:5201"}, refused: true},
		{peers: []string{"10.1.2.4:22", "10.1.2.4:23"}, refused: true},
		{peers: []string{"10.1.2.4:0"}, refused: true},
		{peers: []string{"10.1.2.4:5201", "10.1.3.255:5201"}, refused: true},
		{refused: true},
	} {
		o := bus.Order{Role: bus.RoleTest}
		for _, text := range c.peers {
			o.Peers = append(o.Peers, netip.MustParseAddrPort(text))
		}
		if why := restrictPeers(&o, n); (why != "") != c.refused || !c.refused && len(o.Peers) != c.left {
			t.Errorf("%v: %q, %v", c.peers, why, o.Peers)
		}
	}
}

// TestOrder_OneASecond checks that a hub cannot have an agent connect more than once a second in the mean.
func TestOrder_OneASecond(t *testing.T) {
	a := newAgent(t, Limits{})
	accepted := map[mesh.Reason]int{}
	begin := time.Now()
	for range 300 {
		o := order(bus.RoleTest)
		reason := a.order(bus.Encode(o)).(bus.OrderReply).Refused
		accepted[reason]++
		awaitSettled(t, a)
	}
	limit := orderBurst + 1 + int(time.Since(begin)/orderEvery)
	if n := accepted[""] + accepted[mesh.Busy]; accepted[""] == 0 || n > limit || accepted[mesh.Connections] != 300-n {
		t.Errorf("%v, want at most %d accepted", accepted, limit)
	}
}

// TestOrder_FailedConnectionsOfADay checks that runs that fail have 2,000 connections a day, also over a restart, and
// that those that succeed are not counted.
func TestOrder_FailedConnectionsOfADay(t *testing.T) {
	var connections int
	fail := true
	begin := func(t *testing.T, dir string) *agent {
		a := newAgentIn(t, dir, Limits{}, func(c *Config) { c.Measure = failing(&connections, &fail) })
		a.orders.Every = time.Nanosecond
		a.orders.Burst = 1 << 30
		return a
	}
	run := func(t *testing.T, a *agent) mesh.Reason {
		o := order(bus.RoleTest)
		o.Peers = nil
		for range bus.MaxAddresses {
			o.Peers = append(o.Peers, netip.MustParseAddrPort("127.0.0.1:9"))
		}
		for {
			reason := a.order(bus.Encode(o)).(bus.OrderReply).Refused
			if reason != mesh.Busy {
				awaitSettled(t, a)
				return reason
			}
			o.Run = order(bus.RoleTest).Run
		}
	}
	dir := t.TempDir()
	t.Run("runs that fail", func(t *testing.T) {
		a := begin(t, dir)
		reason := mesh.Reason("")
		for i := 0; reason == "" && i < 400; i++ {
			reason = run(t, a)
		}
		if reason != mesh.Connections || connections > maxFailedConnections || connections < maxFailedConnections-20 {
			t.Errorf("%q after %d connections", reason, connections)
		}
	})
	t.Run("after a restart", func(t *testing.T) {
		if reason := run(t, begin(t, dir)); reason != mesh.Connections {
			t.Errorf("%q", reason)
		}
	})
	t.Run("runs that succeed", func(t *testing.T) {
		fail = false
		a := begin(t, t.TempDir())
		for i := range maxFailedConnections/bus.MaxAddresses + 5 {
			if reason := run(t, a); reason != "" {
				t.Fatalf("run %d: %q", i, reason)
			}
		}
	})
}
