package agent

import (
	"math"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/fleet/bus"
	"github.com/fullpipe-net/fullpipe/internal/fleet/mesh"
	"github.com/fullpipe-net/fullpipe/internal/recheck"
	"github.com/fullpipe-net/fullpipe/internal/testenv/must"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// hostileOrders are orders that an agent with a byte budget refuses. The key names the fault.
var hostileOrders = map[string]struct {
	change func(o *bus.Order)
	want   mesh.Reason
}{
	"run is a path":             {func(o *bus.Order) { o.Run = "../../etc/passwd" }, mesh.Stale},
	"run has control codes":     {func(o *bus.Order) { o.Run = "\x1b[2J" + o.Run[4:] }, mesh.Stale},
	"run is empty":              {func(o *bus.Order) { o.Run = "" }, mesh.Stale},
	"bytes overflow":            {func(o *bus.Order) { o.Spec.Bytes = math.MaxInt64/2 + 2 }, mesh.Rate},
	"bytes negative":            {func(o *bus.Order) { o.Spec.Bytes = -1 }, mesh.Rate},
	"more bytes than the day":   {func(o *bus.Order) { o.Spec.Bytes = 6e9 }, mesh.BytesBudget},
	"no bytes":                  {func(o *bus.Order) { o.Spec.Bytes = 0 }, mesh.BytesBudget},
	"time overflow":             {func(o *bus.Order) { o.Spec.Time = math.MaxInt64/2 + 2 }, mesh.Rate},
	"time beyond the run":       {func(o *bus.Order) { o.Spec.Time = o.Until + 1 }, mesh.Rate},
	"endless run":               {func(o *bus.Order) { o.Until = math.MaxInt64 }, mesh.Rate},
	"endless admission":         {func(o *bus.Order) { o.Within = math.MaxInt64 }, mesh.Rate},
	"negative rate":             {func(o *bus.Order) { o.Spec.Bps = -1 }, mesh.Rate},
	"a module as algorithm":     {func(o *bus.Order) { o.Spec.Congestion = "evil" }, mesh.Rate},
	"a thousand networks":       {func(o *bus.Order) { o.From = make([]netip.Prefix, 1000) }, mesh.Rate},
	"a thousand peers":          {func(o *bus.Order) { o.Peers = make([]netip.AddrPort, 1000) }, mesh.Rate},
	"from anywhere":             {func(o *bus.Order) { o.From = nil }, mesh.Peer},
	"from an invalid network":   {func(o *bus.Order) { o.From = make([]netip.Prefix, 1) }, mesh.Peer},
	"peer without address":      {func(o *bus.Order) { o.Peers = make([]netip.AddrPort, 1) }, mesh.Peer},
	"peer is a multicast group": {peers("224.0.0.1:5201"), mesh.Peer},
	"peer is a metadata server": {peers("169.254.169.254:80"), mesh.Peer},
	"peer is unspecified":       {peers("[::]:22"), mesh.Peer},
	"peer is loopback in IPv6":  {peers("[::ffff:169.254.1.1]:22"), mesh.Peer},
}

func peers(text string) func(o *bus.Order) {
	return func(o *bus.Order) { o.Peers = []netip.AddrPort{netip.MustParseAddrPort(text)} }
}

// TestOrder_Hostile checks that an agent refuses each hostile order, in both roles, and stays able to take an honest
// one.
func TestOrder_Hostile(t *testing.T) {
	for name, c := range hostileOrders {
		for _, role := range []string{bus.RoleServe, bus.RoleTest} {
			if role == bus.RoleTest && strings.HasPrefix(name, "from anywhere") {
				continue // the near end admits nobody
			}
			a := newAgent(t, DefaultLimits())
			o := order(role)
			c.change(&o)
			if got := a.order(bus.Encode(o)).(bus.OrderReply).Refused; got != c.want {
				t.Errorf("%s (%s): %q, want %q", name, role, got, c.want)
			}
			if len(a.holders()) > 0 || len(a.testing) > 0 {
				t.Errorf("%s (%s): a run was begun", name, role)
			}
			if reply := a.order(bus.Encode(order(bus.RoleServe))).(bus.OrderReply); reply.Refused != "" {
				t.Errorf("%s (%s): then an honest order: %q (%s)", name, role, reply.Refused, reply.Detail)
			}
		}
	}
}

// TestOrder_LoopbackPeer checks that a hub cannot send an agent to the services of its own host.
func TestOrder_LoopbackPeer(t *testing.T) {
	a := newAgent(t, DefaultLimits())
	a.Addresses = []netip.Addr{netip.MustParseAddr("192.0.2.1")}
	o := order(bus.RoleTest)
	peers("127.0.0.1:22")(&o)
	if got := a.order(bus.Encode(o)).(bus.OrderReply).Refused; got != mesh.Peer {
		t.Errorf("%q, want %q", got, mesh.Peer)
	}
}

// TestOrder_Repeated checks that an order is carried out once in each role.
func TestOrder_Repeated(t *testing.T) {
	a := newAgent(t, DefaultLimits())
	o := order(bus.RoleServe)
	if got := a.order(bus.Encode(o)).(bus.OrderReply).Refused; got != "" {
		t.Fatalf("%q", got)
	}
	a.forget(o.Run)
	for range 3 {
		if got := a.order(bus.Encode(o)).(bus.OrderReply).Refused; got != mesh.Stale {
			t.Errorf("the same order again: %q, want %q", got, mesh.Stale)
		}
	}
	for range 2 * maxRemembered {
		a.order(bus.Encode(order(bus.RoleServe)))
	}
	if len(a.ordered) != maxRemembered {
		t.Errorf("%d orders are remembered, want %d", len(a.ordered), maxRemembered)
	}
}

// TestOrder_FloodStaysWithinTheBudget checks that orders that are accepted at the same time share the day's budget,
// and that few wait at a time.
func TestOrder_FloodStaysWithinTheBudget(t *testing.T) {
	a := newAgent(t, Limits{Budget: recheck.Budget{Bytes: 10e6, Time: time.Minute}})
	accepted := map[mesh.Reason]int{}
	for range 100 {
		o := order(bus.RoleServe)
		o.Spec.Bytes = 2e6 // 4 MB both ways
		accepted[a.order(bus.Encode(o)).(bus.OrderReply).Refused]++
	}
	if accepted[""] != 2 || accepted[mesh.BytesBudget] != 98 {
		t.Errorf("%v of 4 MB with a budget of 10 MB", accepted)
	}
	unlimited := newAgent(t, Limits{})
	accepted = map[mesh.Reason]int{}
	for range 100 {
		accepted[unlimited.order(bus.Encode(order(bus.RoleServe))).(bus.OrderReply).Refused]++
	}
	if accepted[""] != maxServing || accepted[mesh.Busy] < 20 || accepted[mesh.Connections] < 60 {
		t.Errorf("without a budget: %v", accepted)
	}
}

// TestLimits_WiderNetworkThanAllowed checks that a network that only begins within an allowed one is refused.
func TestLimits_WiderNetworkThanAllowed(t *testing.T) {
	l := Limits{Peers: []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16")}}
	for network, want := range map[string]mesh.Reason{"10.1.2.3/32": "", "10.1.0.0/16": "", "10.1.0.0/8": mesh.Peer,
		"10.1.0.0/0": mesh.Peer, "10.2.0.0/24": mesh.Peer, "::/0": mesh.Peer} {
		o := order(bus.RoleServe)
		o.From = []netip.Prefix{netip.MustParsePrefix(network)}
		if got, _ := l.refusal(&o, Use{}, time.Now()); got != want {
			t.Errorf("%s: %q, want %q", network, got, want)
		}
	}
}

// TestServe_KeyHasTheSizeOfItsRun checks that a stolen run key gets no larger or longer transfer than the order.
func TestServe_KeyHasTheSizeOfItsRun(t *testing.T) {
	a := newAgent(t, DefaultLimits())
	o := order(bus.RoleServe)
	if reply := a.order(bus.Encode(o)).(bus.OrderReply); reply.Refused != "" {
		t.Fatal(reply.Refused, reply.Detail)
	}
	far := must.Get(dial(t, a, o.Key))(t)
	defer far.Close()
	honest := transfer.Spec{Direction: transfer.Up, Time: 100 * time.Millisecond, Bytes: 1e5}
	for name, change := range map[string]func(s *transfer.Spec){
		"bytes":         func(s *transfer.Spec) { s.Bytes = 100 * o.Spec.Bytes },
		"time":          func(s *transfer.Spec) { s.Time = time.Hour },
		"bytes, down":   func(s *transfer.Spec) { s.Bytes = 100 * o.Spec.Bytes; s.Direction = transfer.Down },
		"5,000 streams": func(s *transfer.Spec) { s.Streams = 5000 },
	} {
		spec := honest
		change(&spec)
		if _, err := transfer.Run(t.Context(), far, spec, nil); err == nil {
			t.Errorf("%s: more than the order allows was transferred", name)
		}
	}
	if spent := a.spent.today(time.Now()); spent.Bytes > 2*o.Spec.Bytes {
		t.Errorf("the run's key moved %d bytes", spent.Bytes)
	}
}
