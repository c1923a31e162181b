// Package embed runs a NATS server inside the hub's process. Agents reach it by a WebSocket behind the hub's HTTPS
// server, and the hub by a pipe.
package embed

import (
	"bufio"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"time"

	natsd "github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"github.com/fullpipe-net/fullpipe/internal/fleet/bus"
)

// Server is an embedded NATS server.
type Server struct {
	nats *natsd.Server
	hub  string // secret of the hub's own connection

	mu    sync.Mutex
	conns map[string]map[uint64]bool // open connections by public key
	// forwarded has the agents by the local address of the proxy's connection to the server. Nobody else can bind that
	// address, so no header and no other process on this host can claim one.
	forwarded map[string]*forwarded
}

// forwarded is a connection of an agent that the proxy forwards.
type forwarded struct {
	from netip.Addr
	nkey string // public key; "" until it is admitted
	id   uint64 // of the server
}

// Admit returns the ID of the agent with a public key, which connects from an address.
type Admit func(ctx context.Context, nkey string, from netip.Addr) (agent string, err error)

// admitTime limits one question to the store.
const admitTime = 5 * time.Second

// Start starts a server. admit is asked at each connect.
func Start(admit Admit, secret string) (*Server, error) {
	s := &Server{hub: secret, conns: map[string]map[uint64]bool{}, forwarded: map[string]*forwarded{}}
	server, err := natsd.NewServer(&natsd.Options{
		ServerName: "fullpipe-hub", DontListen: true, NoSigs: true, NoLog: true, NoSystemAccount: true,
		MaxPayload: bus.MaxMessage, AlwaysEnableNonce: true, MaxControlLine: 2048, MaxSubs: 64,
		AuthTimeout: admitTime.Seconds(), PingInterval: bus.HereEvery, MaxPingsOut: 2,
		// The short first ping, after 2 s, would arrive before the reply to CONNECT where the store takes longer to
		// answer, and clients then give up.
		DisableShortFirstPing: true,

		Websocket: natsd.WebsocketOpts{Host: "127.0.0.1", Port: -1, NoTLS: true, HandshakeTimeout: admitTime},

		CustomClientAuthentication: &door{s, admit},
	})
	if err != nil {
		return nil, fmt.Errorf("nats-server: %w", err)
	}
	s.nats = server
	server.Start()
	if !server.ReadyForConnections(10 * time.Second) {
		server.Shutdown()
		return nil, errors.New("nats-server: not ready within 10 s")
	}
	return s, nil
}

// door admits the hub itself and agents that sign the nonce.
type door struct {
	s     *Server
	admit Admit
}

// Check implements natsd.Authentication.
func (d *door) Check(c natsd.ClientAuthentication) bool {
	options := c.GetOpts()
	if options.Nkey == "" {
		// The hub's own connection is a pipe; a WebSocket cannot know the secret.
		return d.s.hub != "" && options.Token == d.s.hub
	}
	proxied := d.s.forwardedAt(c.RemoteAddress())
	if proxied == nil {
		return false // not by the hub's proxy
	}
	key, err := nkeys.FromPublicKey(options.Nkey)
	if err != nil {
		return false
	}
	signature, err := base64.RawURLEncoding.DecodeString(options.Sig)
	if err != nil || key.Verify(c.GetNonce(), signature) != nil {
		return false
	}
	ctx, cancel := context.WithTimeout(context.Background(), admitTime)
	defer cancel()
	agent, err := d.admit(ctx, options.Nkey, proxied.from)
	if err != nil {
		return false
	}
	c.RegisterUser(&natsd.User{Username: options.Nkey, Permissions: permissions(agent)})
	return d.s.opened(c, proxied, options.Nkey)
}

// opened records an admitted connection. It returns false if the agent has left meanwhile.
func (s *Server) opened(c natsd.ClientAuthentication, proxied *forwarded, nkey string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.forwarded[c.RemoteAddress().String()] != proxied {
		return false
	}
	proxied.nkey = nkey
	proxied.id = c.GetID()
	if s.conns[nkey] == nil {
		s.conns[nkey] = map[uint64]bool{}
	}
	s.conns[nkey][proxied.id] = true
	return true
}

// forwardedAt returns the connection that the proxy forwards from an address, nil for another connection.
func (s *Server) forwardedAt(at net.Addr) *forwarded {
	if at == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.forwarded[at.String()]
}

// forwards records a connection of the proxy until done is called.
func (s *Server) forwards(at net.Addr, from netip.Addr) (done func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	proxied := &forwarded{from: from}
	s.forwarded[at.String()] = proxied
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.forwarded, at.String())
		delete(s.conns[proxied.nkey], proxied.id)
		if len(s.conns[proxied.nkey]) == 0 {
			delete(s.conns, proxied.nkey)
		}
	}
}

// permissions returns what an agent may publish and subscribe to: its own subjects only.
func permissions(agent string) *natsd.Permissions {
	return &natsd.Permissions{
		Publish:   &natsd.SubjectPermission{Allow: []string{bus.Up(agent, ">")}},
		Subscribe: &natsd.SubjectPermission{Allow: []string{bus.Down(agent, ">"), bus.Inbox(agent) + ".>"}},
		Response:  &natsd.ResponsePermission{MaxMsgs: 1, Expires: time.Minute},
	}
}

// Connect returns the hub's own connection.
func (s *Server) Connect() (*nats.Conn, error) {
	return nats.Connect("", nats.InProcessServer(s.nats), nats.Token(s.hub), nats.Name("hub"), nats.MaxReconnects(-1))
}

// Disconnect closes all connections with a public key.
func (s *Server) Disconnect(nkey string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id := range s.conns[nkey] {
		_ = s.nats.DisconnectClientByID(id) // it may have left
	}
	delete(s.conns, nkey)
}

// proxyBuffer is the size of a proxy's buffer for each direction of a connection. A message is larger at times and then
// takes several rounds.
const proxyBuffer = 4 << 10

// Handler forwards the agents' WebSocket connections to the server, from the upgrade request on.
func (s *Server) Handler() (http.Handler, error) {
	target, err := url.Parse(s.nats.WebsocketURL())
	if err != nil {
		return nil, err
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.EqualFold(r.Header.Get("Upgrade"), "websocket") {
			http.Error(w, "agents connect here", http.StatusUpgradeRequired)
			return
		}
		from, err := netip.ParseAddrPort(r.RemoteAddr)
		if err != nil {
			http.Error(w, "the address cannot be read", http.StatusBadRequest)
			return
		}
		back, err := net.DialTimeout("tcp", target.Host, admitTime)
		if err != nil {
			http.Error(w, "the bus is not reachable", http.StatusBadGateway)
			return
		}
		defer back.Close()
		defer s.forwards(back.LocalAddr(), from.Addr().Unmap())() // ends before back is closed and its port is free
		out := r.Clone(r.Context())
		out.URL = &url.URL{Path: "/"}
		out.Host = target.Host
		out.Header.Del("X-Forwarded-For") // a stranger's
		if err := out.Write(back); err != nil {
			http.Error(w, "the bus is not reachable", http.StatusBadGateway)
			return
		}
		front, early, err := http.NewResponseController(w).Hijack()
		if err != nil {
			http.Error(w, "no upgrade on this connection", http.StatusInternalServerError)
			return
		}
		defer front.Close()
		_ = front.SetDeadline(time.Time{}) // NATS has pings
		forward(front, back, early.Reader)
	}), nil
}

// forward copies between two connections until one ends. early has what was read of front already.
func forward(front, back net.Conn, early *bufio.Reader) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		if n := early.Buffered(); n > 0 {
			if _, err := io.CopyN(back, early, int64(n)); err != nil {
				back.Close()
				return
			}
		}
		early = nil
		_, _ = io.CopyBuffer(onlyWriter{back}, onlyReader{front}, make([]byte, proxyBuffer))
		back.Close()
	}()
	_, _ = io.CopyBuffer(onlyWriter{front}, onlyReader{back}, make([]byte, proxyBuffer))
	front.Close()
	<-done
}

// onlyReader and onlyWriter hide methods with which io.Copy would take larger buffers.
type onlyReader struct{ io.Reader }
type onlyWriter struct{ io.Writer }

// Shutdown ends the server.
func (s *Server) Shutdown() {
	s.nats.Shutdown()
	s.nats.WaitForShutdown()
}
