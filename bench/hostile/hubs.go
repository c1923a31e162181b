//go:build linux

package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/fullpipe-net/fullpipe/internal/fleet/bus"
	"github.com/fullpipe-net/fullpipe/internal/fleet/bus/embed"
	"github.com/fullpipe-net/fullpipe/internal/fleet/hub"
	"github.com/fullpipe-net/fullpipe/internal/httpserver"
	"github.com/fullpipe-net/fullpipe/internal/probe"
	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/serverlog"
)

// hostileHub is a hub of a fleet that means harm to its only agent. The agent's own limits are those of the harness:
// 1 GB and one minute a day, 5 s and 100 Mbit/s a transfer, peers in 192.0.2.0/24.
type hostileHub struct {
	join    http.HandlerFunc // nil: joins are honest
	token   func(t *bus.Token)
	welcome []byte               // reply to the agent's hello; nil: an honest one
	attack  func(v *victimAgent) // after the hello; nil: the attack is the join or the welcome
}

// victimAgent is the agent as the hub sees it.
type victimAgent struct{ conn *nats.Conn }

const victimID = "victim"

// send sends an order as it is, and reports whether the agent accepts it.
func (v *victimAgent) send(order []byte) (accepted bool, err error) {
	m, err := v.conn.Request(bus.Down(victimID, bus.OrderKind), order, 20*time.Second)
	if err != nil {
		return false, err
	}
	var reply bus.OrderReply
	if err := bus.Decode(m.Data, &reply); err != nil {
		return false, err
	}
	return reply.Refused == "", nil
}

// wrong reports that an attack succeeded.
func wrong(format string, args ...any) { fmt.Printf("ADMITTED "+format+"\n", args...) }

// honestEpoch is the hub's: an agent follows the lead that welcomes it.
const honestEpoch = 5

// honestOrder returns an order of a new run that the agent's limits allow.
func honestOrder(role string) bus.Order {
	var random [10]byte
	rand.Read(random[:])
	o := bus.Order{V: bus.Version, Run: record.NewID(time.Now(), random), Role: role, Far: "far",
		Lead: bus.Lead{Epoch: honestEpoch},
		Key:  probe.NewKey().String(), Within: time.Second, Until: 10 * time.Second,
		Spec: bus.Spec{Time: 200 * time.Millisecond, Bytes: 1e6, Bps: 1e7, Streams: 1}, Task: "t", Origin: "scheduled",
		PathKey: record.SeriesID{Far: "far"}.Key()}
	if role == bus.RoleServe {
		o.From = []netip.Prefix{netip.MustParsePrefix("192.0.2.1/32")}
	} else {
		o.Peers = []netip.AddrPort{netip.MustParseAddrPort("192.0.2.1:9")}
	}
	return o
}

// stillWorks checks that the agent takes an honest order after an attack.
func (v *victimAgent) stillWorks() {
	accepted, err := v.send(bus.Encode(honestOrder(bus.RoleServe)))
	if err != nil || !accepted {
		wrong("and the agent takes no honest order any more: %v", err)
	}
}

// refused sends a changed order in both roles. The agent must accept neither.
func refused(roles []string, change func(o *bus.Order)) *hostileHub {
	return &hostileHub{attack: func(v *victimAgent) {
		for _, role := range roles {
			o := honestOrder(role)
			change(&o)
			if accepted, err := v.send(bus.Encode(o)); err != nil || accepted {
				wrong("an order to %s: %v", role, err)
			}
		}
		v.stillWorks()
	}}
}

// raw sends messages that are no orders.
func raw(messages ...string) *hostileHub {
	return &hostileHub{attack: func(v *victimAgent) {
		for _, text := range messages {
			if accepted, err := v.send([]byte(text)); err != nil || accepted {
				wrong("%.60q: %v", text, err)
			}
		}
		v.stillWorks()
	}}
}

func prefixes(texts ...string) (all []netip.Prefix) {
	for _, text := range texts {
		all = append(all, netip.MustParsePrefix(text))
	}
	return all
}

func peersAt(texts ...string) func(o *bus.Order) {
	return func(o *bus.Order) {
		o.Peers = nil
		for _, text := range texts {
			o.Peers = append(o.Peers, netip.MustParseAddrPort(text))
		}
	}
}

// hostileOrders are orders beyond an agent's limits.
func hostileOrders() map[string]*hostileHub {
	both := []string{bus.RoleServe, bus.RoleTest}
	all := map[string]*hostileHub{}
	for name, change := range map[string]func(o *bus.Order){
		"run-is-a-path":       func(o *bus.Order) { o.Run = "../../../../etc/cron.d/x" },
		"run-has-escapes":     func(o *bus.Order) { o.Run = attack },
		"bytes-overflow":      func(o *bus.Order) { o.Spec.Bytes = math.MaxInt64/2 + 2 },
		"bytes-none":          func(o *bus.Order) { o.Spec.Bytes = 0 },
		"bytes-negative":      func(o *bus.Order) { o.Spec.Bytes = math.MinInt64 },
		"bytes-above-the-day": func(o *bus.Order) { o.Spec.Bytes = 600e6 },
		"time-overflow":       func(o *bus.Order) { o.Spec.Time = math.MaxInt64/2 + 2 },
		"time-above-limit":    func(o *bus.Order) { o.Spec.Time = 6 * time.Second },
		"never-ending":        func(o *bus.Order) { o.Until = math.MaxInt64; o.Spec.Time = math.MaxInt64 },
		"admission-endless":   func(o *bus.Order) { o.Within = math.MaxInt64 },
		"rate-none":           func(o *bus.Order) { o.Spec.Bps = 0 },
		"rate-above-limit":    func(o *bus.Order) { o.Spec.Bps = 101e6 },
		"rate-negative":       func(o *bus.Order) { o.Spec.Bps = -1e300 },
		"streams-absurd":      func(o *bus.Order) { o.Spec.Streams = 1 << 30 },
		"congestion-module":   func(o *bus.Order) { o.Spec.Congestion = "../evil" },
		"role-unknown":        func(o *bus.Order) { o.Role = "run-program" },
		"older-epoch":         func(o *bus.Order) { o.Epoch = honestEpoch - 1 },
		"future-version":      func(o *bus.Order) { o.V = 99 },
		"networks-1000":       func(o *bus.Order) { o.From = make([]netip.Prefix, 1000) },
		"other-network":       func(o *bus.Order) { o.From = prefixes("198.51.100.1/32") },
		"wider-network":       func(o *bus.Order) { o.From = prefixes("192.0.2.0/8") },
	} {
		all[name] = refused(both, change)
	}
	// An honest order comes first: the agent may not have read the welcome yet, which says the epoch too.
	older := all["older-epoch"].attack
	all["older-epoch"] = &hostileHub{attack: func(v *victimAgent) { v.stillWorks(); older(v) }}
	all["from-anywhere"] = refused(both[:1], func(o *bus.Order) { o.From = nil })
	all["without-key"] = refused(both[:1], func(o *bus.Order) { o.Key = "" })
	for name, change := range map[string]func(o *bus.Order){
		"peer-of-another-network": peersAt("192.0.2.1:9", "198.51.100.1:9"), "peer-loopback": peersAt("127.0.0.1:22"),
		"peer-metadata": peersAt("169.254.169.254:80"), "peer-multicast": peersAt("224.0.0.1:9"),
		"peer-unspecified": peersAt("0.0.0.0:22", "[::]:22"),
		"peers-1000":       func(o *bus.Order) { o.Peers = make([]netip.AddrPort, 1000) },
	} {
		all[name] = refused(both[1:], change)
	}
	return all
}

func hostileHubs() (all []farEnd) {
	hubs := map[string]*hostileHub{
		"join-garbage":  {join: func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, attack) }},
		"join-escapes":  {join: replies(`{"error":` + jsonText(attack) + `}`)},
		"join-endless":  {join: func(w http.ResponseWriter, _ *http.Request) { endless(w) }},
		"join-silent":   {join: func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }},
		"join-nobody":   {join: replies(`{"id":"","name":"x"}`)},
		"join-redirect": {join: redirects()},
		"other-authority": {token: func(t *bus.Token) { t.Pin = strings.Repeat("A", 43) },
			join: func(http.ResponseWriter, *http.Request) { wrong("the secret was sent to another hub") }},
		"welcome-escapes":  {welcome: []byte(`{"v":1,"error":` + jsonText(attack) + `}`)},
		"welcome-name":     {welcome: []byte(`{"v":1,"name":` + jsonText(attack) + `}`)},
		"welcome-future":   {welcome: []byte(`{"v":9}`)},
		"welcome-garbage":  {welcome: []byte(attack)},
		"order-garbage":    raw("", "{", "null", "[]", `{"v":"1"}`, attack, strings.Repeat("[", 1<<19), "\x00\xff"),
		"order-of-1-MiB":   raw(`{"v":1,"far":"` + strings.Repeat("x", 1<<20-100) + `"}`),
		"order-types":      raw(`{"v":1,"peers":{}}`, `{"v":1,"spec":[]}`, `{"v":1e300}`, `{"v":1,"until_ns":"1h"}`),
		"order-text":       {attack: orderText},
		"order-replayed":   {attack: orderReplayed},
		"order-flood":      {attack: orderFlood},
		"stop-flood":       {attack: stopFlood},
		"order-strangers":  {attack: connectToStrangers},
		"order-and-leaves": {attack: func(v *victimAgent) { v.conn.Close() }},
	}
	for name, h := range hostileOrders() {
		hubs["order-"+name] = h
	}
	for name, h := range hubs {
		all = append(all, farEnd{name: "hub-" + name, kind: "hub", hub: h})
	}
	return all
}

func replies(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, text) }
}

func endless(w io.Writer) {
	noise := make([]byte, 1<<16)
	for {
		if _, err := w.Write(noise); err != nil {
			return
		}
	}
}

// redirects sends a join to another path, where the secret must not arrive.
func redirects() http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != bus.JoinPath {
			wrong("the secret followed a redirection")
		}
		http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
	}
}

// orderText has texts that a terminal obeys in an order that is otherwise fine.
func orderText(v *victimAgent) {
	for _, role := range []string{bus.RoleServe, bus.RoleTest} {
		o := honestOrder(role)
		o.Far = attack
		o.Task = attack
		o.Origin = attack
		o.PathKey = attack
		if accepted, err := v.send(bus.Encode(o)); err != nil || !accepted {
			wrong("not: the order is not taken, so the text is not tried: %v", err)
		}
	}
}

func orderReplayed(v *victimAgent) {
	o := honestOrder(bus.RoleServe)
	for i := range 5 {
		if accepted, err := v.send(bus.Encode(o)); err != nil || accepted != (i == 0) {
			wrong("the same order, time %d: %v", i+1, err)
		}
		_ = v.conn.Publish(bus.Down(victimID, bus.StopKind), bus.Encode(bus.Stop{Run: o.Run}))
	}
	v.stillWorks()
}

// orderFlood orders 400 MB each time. 1 GB a day allows two at once, until their admission ends, and nothing moves.
func orderFlood(v *victimAgent) {
	accepted := 0
	began := time.Now()
	for range 3000 {
		o := honestOrder(bus.RoleServe)
		o.Spec.Bytes = 200e6
		ok, err := v.send(bus.Encode(o))
		if err != nil {
			wrong("%v", err)
			return
		}
		if ok {
			accepted++
			_ = v.conn.Publish(bus.Down(victimID, bus.OrderKind), bus.Encode(o)) // a message without reply
		}
	}
	const atOnce = 2
	periods := 2 + int(time.Since(began)/time.Second) // of admission
	if accepted < atOnce || accepted > atOnce*periods {
		wrong("%d orders of 400 MB of a day's 1 GB", accepted)
	}
}

// connectToStrangers orders connections to an open and to a closed port of a third party as fast as it can, 16 an order,
// for 3 s each. The agent takes 30 orders at once and one a second, and reports no byte of the third party.
func connectToStrangers(v *victimAgent) {
	_, err := v.conn.Subscribe(bus.AnyUp(bus.FailedKind), func(m *nats.Msg) {
		if strings.Contains(string(m.Data), thirdPartyBanner) {
			wrong("the hub learns what a third party says: %s", m.Data)
		}
	})
	if err != nil {
		wrong("not: %v", err)
		return
	}
	accepted := 0
	began := time.Now()
	for _, port := range []uint16{22, 9} {
		for end := time.Now().Add(3 * time.Second); time.Now().Before(end); {
			o := honestOrder(bus.RoleTest)
			peer := netip.AddrPortFrom(thirdParty, port)
			o.Peers = slices.Repeat([]netip.AddrPort{peer}, bus.MaxAddresses)
			ok, err := v.send(bus.Encode(o))
			if err != nil {
				wrong("%v", err)
				return
			}
			if ok {
				accepted++
			}
		}
	}
	if most := 31 + int(time.Since(began)/time.Second); accepted < 2 || accepted > most {
		wrong("%d orders, at most %d", accepted, most)
	}
}

// A third party that speaks first, as e2e/hostile has it.
const thirdPartyBanner = "SSH-2.0-third-party"

var thirdParty = netip.MustParseAddr("192.0.2.77")

func stopFlood(v *victimAgent) {
	for range 20_000 {
		_ = v.conn.Publish(bus.Down(victimID, bus.StopKind), bus.Encode(bus.Stop{Run: attack}))
	}
	_ = v.conn.Flush()
	v.stillWorks()
}

// play runs a hostile hub on a port of loopback. It prints the token for its agent, and OVER after the attack.
func (h *hostileHub) play() error {
	ca, err := hub.NewCA([]string{"127.0.0.1"})
	if err != nil {
		return err
	}
	secret := rand.Text()
	server, err := embed.Start(func(context.Context, string, netip.Addr) (string, error) { return victimID, nil }, secret)
	if err != nil {
		return err
	}
	defer server.Shutdown()
	door := server.Handler()
	l, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return err
	}
	join := h.join
	if join == nil {
		join = replies(`{"id":"` + victimID + `","name":"victim"}`)
	}
	mux := http.NewServeMux()
	mux.Handle("/", join)
	mux.Handle(bus.Path, door)
	web := httpserver.Start(l, httpserver.Config{Handler: mux, TLS: ca.TLS(), Log: serverlog.New(serverlog.Config{Out: io.Discard})})
	defer web.Close()
	conn, err := server.Connect()
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := h.greet(conn); err != nil {
		return err
	}
	token := bus.Token{URLs: []string{"https://" + l.Addr().String()}, Secret: "secret", Pin: bus.Pin(ca.Cert)}
	if h.token != nil {
		h.token(&token)
	}
	fmt.Println(token)
	if h.join != nil {
		time.Sleep(2 * time.Second) // the agent ends by itself, or is interrupted now
		fmt.Println("OVER")
	}
	<-ended()
	return nil
}

// greet welcomes the agent and attacks it.
func (h *hostileHub) greet(conn *nats.Conn) error {
	first := make(chan struct{}, 1)
	first <- struct{}{}
	_, err := conn.Subscribe(bus.AnyUp(bus.HelloKind), func(m *nats.Msg) {
		welcome := h.welcome
		if welcome == nil {
			welcome = bus.Encode(bus.Welcome{V: bus.Version, Name: "victim", Lead: bus.Lead{Epoch: honestEpoch}})
		}
		_ = m.Respond(welcome)
		select {
		case <-first:
		default:
			return
		}
		go func() {
			if h.attack != nil {
				h.attack(&victimAgent{conn})
			}
			time.Sleep(time.Second) // for the agent to say something
			fmt.Println("OVER")
		}()
	})
	if err != nil {
		return err
	}
	return conn.Flush()
}
