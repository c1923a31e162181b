package agent

import (
	"context"
	"crypto/rand"
	"errors"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nkeys"

	"github.com/fullpipe-net/fullpipe/internal/fleet/bus"
	"github.com/fullpipe-net/fullpipe/internal/fleet/mesh"
	"github.com/fullpipe-net/fullpipe/internal/peer"
	"github.com/fullpipe-net/fullpipe/internal/probe"
	"github.com/fullpipe-net/fullpipe/internal/recheck"
	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/testenv/must"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// newAgent returns an agent with a server on loopback, without a hub.
func newAgent(t *testing.T, limits Limits) *agent {
	t.Helper()
	return newAgentIn(t, t.TempDir(), limits)
}

func newAgentIn(t *testing.T, dir string, limits Limits, change ...func(*Config)) *agent {
	t.Helper()
	key := must.Get(nkeys.CreateUser())(t)
	ctx, cancel := context.WithCancel(context.Background())
	c := Config{State: State{ID: "anna", URLs: []string{"nats://127.0.0.1:1"}}, Key: key, Limits: limits,
		Dir: dir, Listen: "127.0.0.1:0", Addresses: []netip.Addr{netip.MustParseAddr("127.0.0.1")},
		Measure: func(context.Context, bus.Order, *Use) ([]byte, error) { return []byte("{}"), nil }}
	for _, f := range change {
		f(&c)
	}
	a := must.Get(open(ctx, c))(t)
	ended := make(chan error, 1)
	go func() { ended <- a.run(cancel) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return a
}

// order returns an order of a new run that a host without limits accepts.
func order(role string) bus.Order {
	var random [10]byte
	rand.Read(random[:])
	o := bus.Order{V: bus.Version, Run: record.NewID(time.Now(), random), Role: role, Lead: bus.Lead{Epoch: 1},
		Key:    probe.NewKey().String(),
		Within: 20 * time.Second, Until: 20 * time.Second,
		Spec: bus.Spec{Time: 200 * time.Millisecond, Bytes: 1e6, Streams: 1},
		From: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}
	if role == bus.RoleTest {
		o.Peers = []netip.AddrPort{netip.MustParseAddrPort("127.0.0.1:9")}
	}
	return o
}

// TestRefusals checks each reason for which a host refuses an order.
func TestRefusals(t *testing.T) {
	zone := time.FixedZone("", 0)
	always := must.Get(recheck.ParseHours("00:00-12:00,12:00-22:30", zone))(t)
	quiet := time.Date(2026, 5, 1, 10, 0, 0, 0, zone)
	for _, c := range []struct {
		name   string
		limits Limits
		change func(o *bus.Order)
		spent  Use
		want   mesh.Reason
	}{
		{name: "no limits"},
		{name: "quiet hours", limits: Limits{Quiet: always}, want: mesh.QuietHours},
		{name: "transfer too long", limits: Limits{Time: 100 * time.Millisecond}, want: mesh.Rate},
		{name: "no rate in the order", limits: Limits{Rate: 1e6}, want: mesh.Rate},
		{name: "rate too high", limits: Limits{Rate: 1e6}, change: func(o *bus.Order) { o.Spec.Bps = 2e6 }, want: mesh.Rate},
		{name: "rate within the limit", limits: Limits{Rate: 1e6}, change: func(o *bus.Order) { o.Spec.Bps = 1e6 }},
		{name: "bytes are used", limits: Limits{Budget: recheck.Budget{Bytes: 10e6}}, spent: Use{Bytes: 9e6},
			want: mesh.BytesBudget},
		{name: "time is used", limits: Limits{Budget: recheck.Budget{Time: time.Minute}},
			spent: Use{Time: time.Minute},
			want:  mesh.TimeBudget},
		{name: "another network", limits: Limits{Peers: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}},
			want: mesh.Peer},
		{name: "far end in another network", limits: Limits{Peers: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}},
			change: func(o *bus.Order) { o.Peers = []netip.AddrPort{netip.MustParseAddrPort("192.0.2.1:5201")} },
			want:   mesh.Peer},
		{name: "from anywhere", limits: Limits{Peers: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}},
			change: func(o *bus.Order) { o.From = nil }, want: mesh.Peer},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := order(bus.RoleServe)
			if c.change != nil {
				c.change(&o)
			}
			if got, detail := c.limits.refusal(&o, c.spent, quiet); got != c.want {
				t.Errorf("%q (%s), want %q", got, detail, c.want)
			}
		})
	}
}

func TestOrder_Stale(t *testing.T) {
	a := newAgent(t, Limits{})
	reply := func(change func(o *bus.Order)) mesh.Reason {
		o := order(bus.RoleServe)
		change(&o)
		return a.order(bus.Encode(o)).(bus.OrderReply).Refused
	}
	if got := reply(func(o *bus.Order) { o.Epoch = 7 }); got != "" {
		t.Errorf("accepted: %q", got)
	}
	for name, c := range map[string]struct {
		change func(o *bus.Order)
		want   mesh.Reason
	}{
		"older epoch":      {func(o *bus.Order) { o.Epoch = 6 }, mesh.Stale},
		"another version":  {func(o *bus.Order) { o.Epoch = 7; o.V = 99 }, mesh.Stale},
		"unknown role":     {func(o *bus.Order) { o.Epoch = 7; o.Role = "format-disk" }, mesh.Stale},
		"no key":           {func(o *bus.Order) { o.Epoch = 7; o.Key = "" }, mesh.Stale},
		"longer than 30 m": {func(o *bus.Order) { o.Epoch = 7; o.Until = time.Hour }, mesh.Rate},
		"negative time":    {func(o *bus.Order) { o.Epoch = 7; o.Spec.Time = -1 }, mesh.Rate},
		"no admission":     {func(o *bus.Order) { o.Epoch = 7; o.Within = 0 }, mesh.Rate},
		"many streams":     {func(o *bus.Order) { o.Epoch = 7; o.Spec.Streams = 1000 }, mesh.Rate},
	} {
		if got := reply(c.change); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	if got := a.order([]byte("{")).(bus.OrderReply).Refused; got != mesh.Stale {
		t.Errorf("garbage: %q", got)
	}
	a.LimitsErr = errors.New("line 3")
	if got := reply(func(o *bus.Order) { o.Epoch = 7 }); got != mesh.LimitsBroken {
		t.Errorf("a limits file with a fault: %q", got)
	}
}

// TestLead_Follows checks which leads an agent follows: later ones, and that of the hub that it connects to.
func TestLead_Follows(t *testing.T) {
	a := newAgent(t, Limits{})
	first := bus.Lead{Epoch: 7, Database: "one", Proof: "p"}
	if note := a.welcomed(first); note != "" {
		t.Error(note)
	}
	for _, c := range []struct {
		name string
		lead bus.Lead
		want bool
	}{
		{"the same", first, true},
		{"a copy with an equal epoch", bus.Lead{Epoch: 7, Database: "two"}, false},
		{"an older one", bus.Lead{Epoch: 6, Database: "one"}, false},
		{"texts without end", bus.Lead{Epoch: 9, Database: strings.Repeat("a", 1000)}, false},
		{"a later one", bus.Lead{Epoch: 8, Database: "one"}, true},
	} {
		o := order(bus.RoleServe)
		o.Lead = c.lead
		reply := a.order(bus.Encode(o)).(bus.OrderReply)
		if (reply.Refused == "") != c.want || !c.want && (reply.Lead == nil || *reply.Lead != first) {
			t.Errorf("%s: %+v", c.name, reply)
		}
	}
	if note := a.welcomed(bus.Lead{}); note != "" || a.followed().Epoch != 8 {
		t.Errorf("a hub that does not lead: %q, %+v", note, a.followed())
	}
	if note := a.welcomed(bus.Lead{Epoch: 3, Database: "two"}); note == "" || a.followed().Epoch != 3 {
		t.Errorf("a hub on a copy: %q, %+v", note, a.followed())
	}
}

// dial connects to an agent with a run's key.
func dial(t *testing.T, a *agent, key string) (transfer.Peer, error) {
	t.Helper()
	parsed := must.Get(probe.ParseKey(key))(t)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	return peer.Open(ctx, "fullpipe://"+a.server.Addr().String(), peer.Options{Key: &parsed})
}

// TestServe_KeyIsForOneRun checks what a stolen run key is worth: one run, from its addresses, until its end.
func TestServe_KeyIsForOneRun(t *testing.T) {
	events := make(chan Event, 100)
	a := newAgentIn(t, t.TempDir(), Limits{}, func(c *Config) { c.Event = func(e Event) { events <- e } })
	o := order(bus.RoleServe)
	if reason, detail := a.serve(o); reason != "" {
		t.Fatal(reason, detail)
	}
	far := must.Get(dial(t, a, o.Key))(t)
	defer far.Close()
	spec := transfer.Spec{Direction: transfer.Up, Time: 100 * time.Millisecond, Bytes: 1e5}
	for _, d := range []transfer.Direction{transfer.Up, transfer.Down} {
		spec.Direction = d
		if _, err := transfer.Run(t.Context(), far, spec, nil); err != nil {
			t.Fatalf("%s: %v", d, err)
		}
	}
	for deadline := time.Now().Add(10 * time.Second); len(a.holders()) > 0; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the key is valid after both transfers")
		}
	}
	if _, err := transfer.Run(t.Context(), far, spec, nil); err == nil {
		t.Error("a third transfer with the run's key")
	}
	if again, err := dial(t, a, o.Key); err == nil {
		again.Close()
		t.Error("a second session with the run's key")
	}
	elsewhere := order(bus.RoleServe)
	elsewhere.From = []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}
	reason, detail := a.serve(elsewhere)
	for deadline := time.Now().Add(10 * time.Second); reason == mesh.Busy && time.Now().Before(deadline); {
		time.Sleep(10 * time.Millisecond) // the server still ends the sessions before
		reason, detail = a.serve(elsewhere)
	}
	if reason != "" {
		t.Fatal(reason, detail)
	}
	var notFrom *probe.AddressError
	if _, err := dial(t, a, elsewhere.Key); !errors.As(err, &notFrom) || notFrom.From.String() != "127.0.0.1" {
		t.Errorf("with the key at another address: %v", err)
	}
	e := <-events
	for e.Kind != "refused" {
		e = <-events
	}
	if e.Run != elsewhere.Run || !strings.Contains(e.Detail, "127.0.0.1") {
		t.Errorf("the event: %+v", e)
	}
	if _, err := dial(t, a, probe.NewKey().String()); !errors.Is(err, probe.ErrWrongKey) {
		t.Errorf("with another key: %v", err)
	}
}

// TestServe_AdmissionEnds checks that a run's key ends with the admission, but not a run whose near end has connected.
func TestServe_AdmissionEnds(t *testing.T) {
	a := newAgent(t, Limits{})
	late := order(bus.RoleServe)
	late.Within = time.Millisecond
	if reason, detail := a.serve(late); reason != "" {
		t.Fatal(reason, detail)
	}
	for deadline := time.Now().Add(10 * time.Second); len(a.holders()) > 0; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the key is valid after the admission")
		}
	}
	o := order(bus.RoleServe)
	if reason, detail := a.serve(o); reason != "" {
		t.Fatal(reason, detail)
	}
	far := must.Get(dial(t, a, o.Key))(t)
	defer far.Close()
	a.endAdmission(o.Run)
	if _, err := transfer.Run(t.Context(), far, transfer.Spec{Direction: transfer.Up, Time: 100 * time.Millisecond,
		Bytes: 1e5}, nil); err != nil {
		t.Errorf("a run that began in time: %v", err)
	}
}

func TestServe_BusyHost(t *testing.T) {
	a := newAgent(t, Limits{})
	release, ok := a.server.TryTurn(time.Minute, func() {})
	if !ok {
		t.Fatal("the host is not free")
	}
	defer release()
	if reason, _ := a.serve(order(bus.RoleServe)); reason != mesh.Busy {
		t.Errorf("serve: %q", reason)
	}
	if reason, _ := a.test(order(bus.RoleTest)); reason != mesh.Busy {
		t.Errorf("test: %q", reason)
	}
}

func TestLedger_SurvivesRestart(t *testing.T) {
	dir := t.TempDir()
	l := must.Get(openLedger(t.Context(), dir, Limits{}))(t)
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	charged := func(at time.Time, maximum Use) *charge {
		t.Helper()
		c := must.Get(l.charge(at, maximum))(t)
		return c
	}
	charged(now, Use{Bytes: 900, Time: time.Minute, Connections: 9}).settle(now, Use{100, time.Second, 1})
	second := charged(now.Add(time.Hour), Use{Bytes: 50, Time: time.Second})
	second.settle(now, Use{Bytes: 60, Time: time.Second}) // it used more
	second.settle(now, Use{})
	killed := charged(now, Use{Bytes: 7, Time: time.Second})
	again := must.Get(openLedger(t.Context(), dir, Limits{}))(t)
	want := Use{Bytes: 167, Time: 3 * time.Second, Connections: 1}
	if got := again.today(now.Add(2 * time.Hour)); got != want {
		t.Errorf("after a restart: %+v, want %+v", got, want)
	}
	if got := again.today(now.Add(24 * time.Hour)); got != (Use{}) {
		t.Errorf("the next day: %+v", got)
	}
	if got := again.today(now); got != (Use{}) {
		t.Errorf("a clock that is set back brings back: %+v", got)
	}
	// A run over midnight is charged to the new day.
	if got := l.today(now.Add(24 * time.Hour)); got != (Use{Bytes: 7, Time: time.Second}) {
		t.Errorf("during a run, the next day: %+v", got)
	}
	killed.settle(now.Add(24*time.Hour), Use{Bytes: 3})
	if got := l.today(now.Add(24 * time.Hour)); got != (Use{Bytes: 3}) {
		t.Errorf("after it: %+v", got)
	}
}

func TestParseLimits(t *testing.T) {
	l, err := ParseLimits([]byte("day-bytes = \"20GB\"\nday-time = \"20m\"\n" +
		"most-time = \"10s\"\nmost-rate = \"500mbit\"\n" +
		"quiet-hours = \"08:00-18:00\"\nzone = \"Europe/Berlin\"\npeers = [\"10.0.0.0/8\", \"2001:db8::/32\"]\n"))
	if err != nil || l.Budget.Bytes != 20e9 || l.Budget.Time != 20*time.Minute || l.Time != 10*time.Second ||
		l.Rate != 500e6 ||
		len(l.Peers) != 2 || !l.Quiet.Quiet(time.Date(2026, 1, 5, 7, 30, 0, 0, time.UTC)) {
		t.Errorf("%+v, %v", l, err)
	}
	if l, err := ParseLimits(nil); err != nil || l.Budget != DefaultLimits().Budget {
		t.Errorf("an empty file: %+v, %v", l, err)
	}
	for text, want := range map[string]string{
		"day-byte = \"1GB\"":               "line 1: there is no setting day-byte (day-bytes?)",
		"day-bytes = \"lots\"":             "day-bytes: size",
		"most-rate = 5":                    "line 1",
		"peers = [\"10.0.0.1\"]":           "peers: \"10.0.0.1\" is not a network",
		"zone = \"Nowhere\"":               "zone:",
		"quiet-hours = \"00:00-23:59\"":    "quiet-hours:",
		"day-time = \"20m\"\nday-time = 1": "line 2",
	} {
		if _, err := ParseLimits([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

func FuzzParseLimits(f *testing.F) {
	f.Add([]byte("day-bytes = \"20GB\"\npeers = [\"10.0.0.0/8\"]\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		l, err := ParseLimits(text)
		if err != nil {
			return
		}
		o := order(bus.RoleServe)
		l.refusal(&o, Use{}, time.Now())
	})
}
