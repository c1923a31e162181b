//go:build linux

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/netip"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"github.com/fullpipe-net/fullpipe/internal/fleet/agent"
	"github.com/fullpipe-net/fullpipe/internal/fleet/bus"
	"github.com/fullpipe-net/fullpipe/internal/fleet/mesh"
	"github.com/fullpipe-net/fullpipe/internal/record"
)

// hostileAgent is a member of a fleet that means harm to the hub and to other agents, or a thief of its key.
type hostileAgent struct {
	state agent.State
	key   nkeys.KeyPair
	token bus.Token
	conn  *nats.Conn
}

// attackTime is how long an agent attacks where its attack has no end of its own.
const attackTime = 5 * time.Second

// joinAndAttack joins a fleet, connects and attacks.
func joinAndAttack(text string, attack func(a *hostileAgent) error) error {
	dir, err := os.MkdirTemp("", "hostile-agent")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	token, err := bus.ParseToken(text)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	state, key, err := agent.Join(ctx, dir, token, bus.JoinRequest{Name: "hostile",
		Labels: map[string]string{"rack": attackText()}})
	if err != nil {
		return err
	}
	a := &hostileAgent{state: state, key: key, token: token}
	a.conn, err = a.dial(a.key)
	if err != nil {
		return err
	}
	defer a.conn.Close()
	return attack(a)
}

// attackText fits into a label.
func attackText() string { return attack[:min(len(attack), 100)] }

// dial connects to the bus as NATS clients do, without the restraint of our own.
func (a *hostileAgent) dial(key nkeys.KeyPair) (*nats.Conn, error) {
	public, err := key.PublicKey()
	if err != nil {
		return nil, err
	}
	return nats.Connect("wss://"+strings.TrimPrefix(a.state.URLs[0], "https://"), nats.Nkey(public, key.Sign),
		nats.CustomInboxPrefix(bus.Inbox(a.state.ID)), nats.ProxyPath(bus.Path), nats.Secure(bus.PinnedTLS(a.state.Pin)),
		nats.MaxReconnects(-1), nats.ReconnectWait(100*time.Millisecond), nats.IgnoreAuthErrorAbort(),
		nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}), nats.Timeout(20*time.Second))
}

// up publishes a message to the hub.
func (a *hostileAgent) up(kind string, body []byte) {
	_ = a.conn.Publish(bus.Up(a.state.ID, kind), body)
}

// ask requests a reply of the hub, and ignores it.
func (a *hostileAgent) ask(kind string, body []byte) {
	_, _ = a.conn.Request(bus.Up(a.state.ID, kind), body, 2*time.Second)
}

// hello is an introduction with an address that other agents can try.
func (a *hostileAgent) hello(change func(h *bus.Hello)) {
	h := bus.Hello{V: bus.Version, Port: 9, Addresses: []netip.Addr{netip.MustParseAddr("127.0.0.1")},
		ClockNs: time.Now().UnixNano()}
	if change != nil {
		change(&h)
	}
	a.ask(bus.HelloKind, bus.Encode(h))
}

// forever repeats one step until the attack's time is over.
func forever(step func(i int)) {
	for i, end := 0, time.Now().Add(attackTime); time.Now().Before(end); i++ {
		step(i)
	}
}

func hostileAgents() (all []farEnd) {
	for name, act := range map[string]func(a *hostileAgent) error{
		"listens":           listens,
		"publishes":         publishes,
		"unknown-key":       unknownKey,
		"guesses-tokens":    guessesTokens,
		"foreign-replies":   foreignReplies,
		"reconnects":        reconnects,
		"results-invented":  resultsInvented,
		"failures-invented": failuresInvented,
		"lies":              lies,
		"refuses-loudly":    refusesLoudly,
		"silent":            func(a *hostileAgent) error { a.hello(nil); time.Sleep(attackTime); return nil },
		"clock-of-2262": func(a *hostileAgent) error {
			a.hello(func(h *bus.Hello) { h.ClockNs = math.MaxInt64 })
			a.up(bus.HereKind, bus.Encode(bus.Here{V: 1, ClockNs: math.MinInt64}))
			return a.conn.Flush()
		},
		"hello-escapes": func(a *hostileAgent) error {
			a.hello(func(h *bus.Hello) {
				h.Version = attack
				h.Kernel = attack
				h.HostID = attack
				h.Limits.Broken = attack
				h.Labels = map[string]string{"a": attackText()}
			})
			return nil
		},
		"hello-of-1-MiB": func(a *hostileAgent) error {
			a.hello(func(h *bus.Hello) { h.Kernel = strings.Repeat("x", 1<<20-4096) })
			a.hello(func(h *bus.Hello) { h.Addresses = make([]netip.Addr, 100_000) })
			return nil
		},
		"hello-absurd": func(a *hostileAgent) error {
			a.hello(func(h *bus.Hello) {
				h.Port = math.MaxInt64
				h.Limits = bus.Limits{DayBytes: math.MinInt64, DayTimeNs: -1, TimeNs: 1, RateBps: -1e300}
			})
			return nil
		},
		"messages-of-garbage": func(a *hostileAgent) error {
			for _, kind := range []string{bus.HelloKind, bus.HereKind, bus.ResultKind, bus.FailedKind, "unknown", "a.b.c"} {
				for _, body := range []string{"", "{", "null", "[]", attack, strings.Repeat("[", 1<<19), `{"v":"1"}`} {
					a.ask(kind, []byte(body))
				}
			}
			return nil
		},
		"flood-of-heartbeats": func(a *hostileAgent) error {
			body := bus.Encode(bus.Here{V: 1, ClockNs: 1})
			forever(func(int) { a.up(bus.HereKind, body) })
			return nil
		},
		"flood-of-hellos": func(a *hostileAgent) error {
			body := bus.Encode(bus.Hello{V: 1})
			inbox := bus.Inbox(a.state.ID) + ".x"
			forever(func(int) { _ = a.conn.PublishRequest(bus.Up(a.state.ID, bus.HelloKind), inbox, body) })
			return nil
		},
		"flood-of-results": func(a *hostileAgent) error {
			body := make([]byte, 1<<20-1024)
			inbox := bus.Inbox(a.state.ID) + ".x"
			forever(func(int) { _ = a.conn.PublishRequest(bus.Up(a.state.ID, bus.ResultKind), inbox, body) })
			return nil
		},
	} {
		all = append(all, farEnd{name: "agent-" + name, kind: "agent", agent: act})
	}
	return all
}

// listens tries to read the messages of others.
func listens(a *hostileAgent) error {
	var heard atomic.Int64
	for _, subject := range []string{">", "fp.>", "fp.down.*.order", "fp.up.*.result", "fp.up.>", "_INBOX.>", "*.*.*.*",
		"$SYS.>", "_INBOX_*.>"} {
		if _, err := a.conn.Subscribe(subject, func(m *nats.Msg) {
			if !strings.Contains(m.Subject, a.state.ID) {
				heard.Add(1)
			}
		}); err != nil {
			return err
		}
	}
	a.hello(nil)
	time.Sleep(attackTime)
	if n := heard.Load(); n > 0 {
		wrong("%d messages of others were read", n)
	}
	return nil
}

// publishes writes on subjects of others. Nobody may receive it: its own subscription is on its own subjects, so the
// hub's events are the proof.
func publishes(a *hostileAgent) error {
	for _, subject := range []string{"fp.up.other.result", "fp.up.other.hello", "fp.down.other.order", "fp.down.other.stop",
		bus.Down(a.state.ID, bus.OrderKind), "$SYS.REQ.SERVER.PING", "$JS.API.INFO", "$SYS.REQ.USER.AUTH"} {
		if m, err := a.conn.Request(subject, bus.Encode(bus.Hello{V: 1}), 300*time.Millisecond); err == nil {
			wrong("%s: %.100q", subject, m.Data)
		}
	}
	return nil
}

func unknownKey(a *hostileAgent) error {
	key, err := nkeys.CreateUser()
	if err != nil {
		return err
	}
	if conn, err := a.dial(key); err == nil && conn.IsConnected() {
		wrong("a key of no member")
		conn.Close()
	}
	return nil
}

func guessesTokens(a *hostileAgent) error {
	dir, err := os.MkdirTemp("", "hostile-agent")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	for i := range 200 {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		_, _, err := agent.Join(ctx, dir, bus.Token{URLs: a.token.URLs, Pin: a.token.Pin, Secret: fmt.Sprint("guess", i)},
			bus.JoinRequest{Name: "guesser"})
		cancel()
		if err == nil {
			wrong("a guessed token")
		}
	}
	return nil
}

// foreignReplies has the hub reply to subjects of others, and to its own so that replies become questions.
func foreignReplies(a *hostileAgent) error {
	body := bus.Encode(bus.Hello{V: 1})
	forever(func(i int) {
		for _, reply := range []string{"fp.down.other.order", "fp.up.other.hello", bus.Up(a.state.ID, bus.HelloKind),
			bus.Up(a.state.ID, bus.ResultKind), "$SYS.x", "_INBOX_other.x"} {
			_ = a.conn.PublishRequest(bus.Up(a.state.ID, bus.HelloKind), reply, body)
		}
		time.Sleep(10 * time.Millisecond)
	})
	return nil
}

func reconnects(a *hostileAgent) error {
	forever(func(int) {
		if conn, err := a.dial(a.key); err == nil {
			conn.Close()
		}
	})
	return nil
}

// document is a measurement that nobody made.
func document(run, path, text string, bps float64) []byte {
	up := record.Direction{Direction: "up", GoodputBps: &bps, Streams: []record.Stream{}, Warnings: []string{text}}
	doc := &record.Measure{Header: record.Header{Schema: "fullpipe/measure/v1", Version: text, StartedAt: time.Now(),
		Envelope: &record.Envelope{ID: run, TestID: run, PathKey: path, Outcome: record.Done,
			Labels: map[string]string{"x": text}}}, Peer: text, Directions: []record.Direction{up}}
	encoded, _ := json.Marshal(doc) // plain figures
	return encoded
}

func resultsInvented(a *hostileAgent) error {
	o := honestOrder(bus.RoleTest)
	for range 200 {
		m, err := a.conn.Request(bus.Up(a.state.ID, bus.ResultKind),
			document(honestOrder(bus.RoleTest).Run, o.PathKey, attack, 1e9), 5*time.Second)
		if err != nil {
			continue
		}
		var receipt bus.Receipt
		if bus.Decode(m.Data, &receipt) != nil || receipt.Stored {
			wrong("a run that nobody ordered is stored")
		}
	}
	return nil
}

func failuresInvented(a *hostileAgent) error {
	for range 20 {
		a.ask(bus.FailedKind, bus.Encode(bus.Failed{V: 1, Run: honestOrder(bus.RoleTest).Run, Reason: mesh.Reason(attack),
			Detail: attack}))
	}
	return nil
}

// takes replies to the hub's orders, with a present agent's heartbeat.
func (a *hostileAgent) takes(reply func(o bus.Order) []byte) error {
	_, err := a.conn.Subscribe(bus.Down(a.state.ID, bus.OrderKind), func(m *nats.Msg) {
		var o bus.Order
		if bus.Decode(m.Data, &o) == nil {
			_ = m.Respond(reply(o))
		}
	})
	if err != nil {
		return err
	}
	a.hello(nil)
	time.Sleep(4 * attackTime)
	return nil
}

// lies delivers documents with impossible figures and hostile texts for the runs that it is ordered to make.
func lies(a *hostileAgent) error {
	return a.takes(func(o bus.Order) []byte {
		if o.Role == bus.RoleTest {
			go func() {
				for _, bps := range []float64{-1, 1e300, 9e13} {
					a.ask(bus.ResultKind, document(o.Run, o.PathKey, attack, bps))
				}
			}()
		}
		return bus.Encode(bus.OrderReply{Port: 9})
	})
}

func refusesLoudly(a *hostileAgent) error {
	return a.takes(func(bus.Order) []byte {
		return bus.Encode(bus.OrderReply{Refused: mesh.Reason(attack), Detail: strings.Repeat(attack, 1000), Port: -1})
	})
}
