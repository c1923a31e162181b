package embed

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"github.com/fullpipe-net/fullpipe/internal/fleet/bus"
	"github.com/fullpipe-net/fullpipe/internal/testenv/must"
)

// site is a server behind HTTP with agents that it admits by key.
type site struct {
	*Server
	url   string
	tries atomic.Int32 // connects of slow

	mu     sync.Mutex
	agents map[string]string // nkey → ID
	from   netip.Addr        // of the newest connect
}

// slow is an agent about whom the store takes long to answer.
const slow = "slow"

func start(t *testing.T) *site {
	t.Helper()
	s := &site{agents: map[string]string{}}
	server := must.Get(Start(func(_ context.Context, nkey string, from netip.Addr) (string, error) {
		s.mu.Lock()
		s.from = from
		id, known := s.agents[nkey]
		s.mu.Unlock()
		if id == slow {
			s.tries.Add(1)
			time.Sleep(4 * time.Second)
		}
		if !known {
			return "", errors.New("unknown")
		}
		return id, nil
	}, "hub-secret"))(t)
	t.Cleanup(server.Shutdown)
	s.Server = server
	web := httptest.NewServer(server.Handler())
	t.Cleanup(web.Close)
	s.url = "ws" + strings.TrimPrefix(web.URL, "http")
	return s
}

// member returns the key of an agent that the site admits.
func (s *site) member(t *testing.T, id string) (nkeys.KeyPair, string) {
	t.Helper()
	key := must.Get(nkeys.CreateUser())(t)
	public := must.Get(key.PublicKey())(t)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.agents[public] = id
	return key, public
}

func (s *site) dial(key nkeys.KeyPair, public string, more ...nats.Option) (*nats.Conn, error) {
	options := append([]nats.Option{nats.Nkey(public, key.Sign), nats.MaxReconnects(0), nats.Timeout(10 * time.Second)},
		more...)
	return nats.Connect(s.url, options...)
}

// TestServer_AgentUsesItsOwnSubjectsOnly checks what a stolen agent key is worth.
func TestServer_AgentUsesItsOwnSubjectsOnly(t *testing.T) {
	s := start(t)
	key, public := s.member(t, "anna")
	denied := make(chan error, 10)
	conn := must.Get(s.dial(key, public, nats.CustomInboxPrefix(bus.Inbox("anna")),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { denied <- err })))(t)
	defer conn.Close()
	hub := must.Get(s.Connect())(t)
	defer hub.Close()
	must.Get(hub.Subscribe(bus.AnyUp("echo"),
		func(m *nats.Msg) { _ = m.Respond([]byte(bus.AgentOf(m.Subject))) }))(t)
	must.Do(t, hub.Flush())
	reply, err := conn.Request(bus.Up("anna", "echo"), nil, 10*time.Second)
	if err != nil || string(reply.Data) != "anna" {
		t.Fatalf("its own subject: %v", err)
	}
	for _, subject := range []string{bus.Up("bert", "result"), bus.Down("bert", "order"), bus.Down("anna", "order"),
		"$SYS.REQ.SERVER.PING", "$JS.API.INFO", "anything"} {
		must.Do(t, conn.Publish(subject, nil))
		expectDenied(t, denied, "publish to "+subject)
	}
	for _, subject := range []string{bus.Down("bert", ">"), bus.AnyUp("result"), ">", "_INBOX_bert.>", "$SYS.>"} {
		must.Get(conn.SubscribeSync(subject))(t)
		expectDenied(t, denied, "subscribe to "+subject)
	}
}

func expectDenied(t *testing.T, denied <-chan error, action string) {
	t.Helper()
	select {
	case err := <-denied:
		if !errors.Is(err, nats.ErrPermissionViolation) {
			t.Errorf("%s: %v", action, err)
		}
	case <-time.After(10 * time.Second):
		t.Errorf("%s was not denied", action)
	}
}

// TestServer_Admission checks that only signed keys of members are admitted, and that the hub's token needs its secret.
func TestServer_Admission(t *testing.T) {
	s := start(t)
	_, annasKey := s.member(t, "anna")
	stranger := must.Get(nkeys.CreateUser())(t)
	strangersKey := must.Get(stranger.PublicKey())(t)
	for name, dial := range map[string]func() (*nats.Conn, error){
		"unknown key":                  func() (*nats.Conn, error) { return s.dial(stranger, strangersKey) },
		"another's key, own signature": func() (*nats.Conn, error) { return s.dial(stranger, annasKey) },
		"no credentials":               func() (*nats.Conn, error) { return nats.Connect(s.url, nats.MaxReconnects(0)) },
		"a guess of the hub's secret": func() (*nats.Conn, error) {
			return nats.Connect(s.url, nats.Token("hub"),
				nats.MaxReconnects(0))
		},
		"an empty secret": func() (*nats.Conn, error) {
			return nats.Connect(s.url, nats.Token(""),
				nats.MaxReconnects(0))
		},
		"user and password": func() (*nats.Conn, error) {
			return nats.Connect(s.url, nats.UserInfo("a", "b"),
				nats.MaxReconnects(0))
		},
	} {
		if conn, err := dial(); err == nil {
			conn.Close()
			t.Errorf("%s was admitted", name)
		}
	}
}

// TestServer_AddressOfAgent checks that the hub learns an agent's own address: not the proxy's, and none that the agent
// or another process on the hub's host claims.
func TestServer_AddressOfAgent(t *testing.T) {
	s := start(t)
	key, public := s.member(t, "anna")
	forged := http.Header{"X-Forwarded-For": {"203.0.113.9"}, "Forwarded": {"for=203.0.113.9"}}
	for _, local := range []string{"127.0.0.1", "127.7.7.7"} {
		dialer := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(local)}}
		conn, err := s.dial(key, public, nats.Dialer(dialer), nats.WebSocketConnectionHeaders(forged))
		if err != nil {
			t.Fatal(err)
		}
		s.mu.Lock()
		from := s.from
		s.mu.Unlock()
		if from != netip.MustParseAddr(local) {
			t.Errorf("the agent at %s is seen at %s", local, from)
		}
		conn.Close()
	}
	if s.nats.Addr() != nil {
		t.Error("the server listens at an address of its own")
	}
}

// TestServer_ConnectionsOfAKey connects 30 times with each of two keys: two connections of each stay, the last ones.
// After all have left, nothing is remembered.
func TestServer_ConnectionsOfAKey(t *testing.T) {
	s := start(t)
	const tries = 30
	for _, id := range []string{"anna", "bert"} {
		key, public := s.member(t, id)
		closed := make(chan int, tries)
		var all []*nats.Conn
		for i := range tries {
			conn, err := s.dial(key, public, nats.ClosedHandler(func(*nats.Conn) { closed <- i }))
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			all = append(all, conn)
		}
		for range tries - maxConnsOfKey {
			select {
			case i := <-closed:
				if i >= tries-maxConnsOfKey {
					t.Errorf("%s: connection %d of %d was closed", id, i, tries)
				}
			case <-time.After(20 * time.Second):
				t.Fatalf("%s: more than %d connections are open", id, maxConnsOfKey)
			}
		}
		for _, conn := range all[tries-maxConnsOfKey:] {
			if err := conn.FlushTimeout(10 * time.Second); err != nil {
				t.Errorf("%s: a connection that stays: %v", id, err)
			}
			conn.Close()
		}
	}
	for deadline := time.Now().Add(20 * time.Second); ; runtime.Gosched() {
		s.Server.mu.Lock()
		n := len(s.conns)
		s.Server.mu.Unlock()
		if n == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d connections are remembered", n)
		}
	}
}

// TestServer_SlowAdmission checks that an agent waits for a busy hub instead of giving up and coming back.
func TestServer_SlowAdmission(t *testing.T) {
	t.Parallel()
	s := start(t)
	key, _ := s.member(t, slow)
	connected, lost := make(chan struct{}, 1), make(chan error, 10)
	conn, err := bus.Dialer{Agent: slow, Key: key, URLs: []string{s.url}, Connected: func() { connected <- struct{}{} },
		Lost: func(err error) { lost <- err }}.Dial()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	select {
	case <-connected:
	case <-time.After(30 * time.Second):
		t.Fatal("not connected")
	}
	if n := s.tries.Load(); n != 1 {
		t.Errorf("it tried %d times", n)
	}
	if len(lost) > 0 {
		t.Error(<-lost)
	}
}

// TestServer_DisconnectsRemovedAgent checks that a removed agent's connection ends at once.
func TestServer_DisconnectsRemovedAgent(t *testing.T) {
	s := start(t)
	key, public := s.member(t, "anna")
	closed := make(chan struct{})
	conn := must.Get(s.dial(key, public, nats.ClosedHandler(func(*nats.Conn) { close(closed) })))(t)
	defer conn.Close()
	s.mu.Lock()
	delete(s.agents, public)
	s.mu.Unlock()
	s.Disconnect(public)
	select {
	case <-closed:
	case <-time.After(10 * time.Second):
		t.Fatal("the connection is still open")
	}
	if conn, err := s.dial(key, public); err == nil {
		conn.Close()
		t.Error("a removed agent was admitted")
	}
}

// TestServer_ForgetsClosedConnections checks that nothing remains of connections that ended, and that an open one can
// still be cut.
func TestServer_ForgetsClosedConnections(t *testing.T) {
	s := start(t)
	key, public := s.member(t, "anna")
	cut := make(chan struct{})
	open := must.Get(s.dial(key, public, nats.ClosedHandler(func(*nats.Conn) { close(cut) })))(t)
	defer open.Close()
	other, public2 := s.member(t, "bert") // a key of its own: see TestServer_ConnectionsOfAKey
	for range 50 {
		conn := must.Get(s.dial(other, public2))(t)
		conn.Close()
	}
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(time.Millisecond) {
		s.Server.mu.Lock()
		conns := len(s.conns)
		of := len(s.connsOf(public))
		s.Server.mu.Unlock()
		if conns == 1 && of == 1 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d connections, %d of the key", conns, of)
		}
	}
	s.Disconnect(public)
	select {
	case <-cut:
	case <-time.After(10 * time.Second):
		t.Error("the open connection was forgotten too")
	}
}
