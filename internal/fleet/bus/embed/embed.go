// Package embed runs a NATS server inside the hub's process. Agents reach it by a WebSocket behind the hub's HTTPS
// server, and the hub by a pipe.
package embed

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/coder/websocket"
	natsd "github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"github.com/fullpipe-net/fullpipe/internal/fleet/bus"
	"github.com/fullpipe-net/fullpipe/internal/httpserver"
)

// Server is an embedded NATS server. It listens nowhere: its connections are pipes of this process.
type Server struct {
	nats *natsd.Server
	hub  string // secret of the hub's own connection

	mu    sync.Mutex        // guards conns
	conns map[uint64]*agent // by the server's number of the connection
}

// agent is the connection of an agent, or of a stranger.
type agent struct {
	from   netip.Addr
	proven func() // called when its key is
	nkey   string // proven; "" before
}

// maxConnsOfKey limits the connections of one agent: one, and its successor before the hub notices
// the loss of the first.
const maxConnsOfKey = 2

// Admit returns the ID of the agent with a public key, which connects from an address.
type Admit func(ctx context.Context, nkey string, from netip.Addr) (agent string, err error)

// admitTime limits one question to the store.
const admitTime = 5 * time.Second

// Start starts a server. admit is asked at each connect.
func Start(admit Admit, secret string) (*Server, error) {
	s := &Server{hub: secret, conns: map[uint64]*agent{}}
	server, err := natsd.NewServer(&natsd.Options{
		ServerName: "fullpipe-hub", DontListen: true, NoSigs: true, NoLog: true, NoSystemAccount: true,
		MaxPayload: bus.MaxMessage, AlwaysEnableNonce: true, MaxControlLine: 2048, MaxSubs: 64,
		AuthTimeout: admitTime.Seconds(), PingInterval: bus.HereEvery, MaxPingsOut: 2,
		// The short first ping, after 2 s, would arrive before the reply to CONNECT where the store takes longer to
		// answer, and clients then give up.
		DisableShortFirstPing: true,

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
	d.s.mu.Lock()
	conn := d.s.conns[c.GetID()]
	d.s.mu.Unlock()
	if conn == nil {
		return false // not by Handler
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
	id, err := d.admit(ctx, options.Nkey, conn.from)
	if err != nil {
		return false
	}
	c.RegisterUser(&natsd.User{Username: options.Nkey, Permissions: permissions(id)})
	d.s.prove(conn, options.Nkey)
	return true
}

// prove records the key of a connection and ends the oldest of a key that has too many.
func (s *Server) prove(conn *agent, nkey string) {
	conn.proven()
	s.mu.Lock()
	defer s.mu.Unlock()
	conn.nkey = nkey
	of := s.connsOf(nkey)
	for _, id := range of[:max(len(of)-maxConnsOfKey, 0)] {
		go s.nats.DisconnectClientByID(id) //nolint:errcheck // it may have left. The caller has the server's locks.
	}
}

// connsOf returns the connections of a key, the oldest first. The caller has locked mu.
func (s *Server) connsOf(nkey string) (ids []uint64) {
	for id, conn := range s.conns {
		if conn.nkey == nkey {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
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
	of := s.connsOf(nkey)
	s.mu.Unlock()
	for _, id := range of {
		_ = s.nats.DisconnectClientByID(id) // it may have left
	}
}

// Limits of a forwarded connection.
const (
	forwardBuffer = 4 << 10 // bytes of a direction's buffer: a message takes several rounds
	maxInfo       = 4 << 10 // bytes of the server's first line
)

// Handler forwards the agents' WebSocket connections to the server.
func (s *Server) Handler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		from, err := netip.ParseAddrPort(r.RemoteAddr)
		if err != nil {
			http.Error(w, "the address cannot be read", http.StatusBadRequest)
			return
		}
		ws, err := websocket.Accept(w, r, &websocket.AcceptOptions{CompressionMode: websocket.CompressionDisabled})
		if err != nil {
			return // it has sent the refusal
		}
		front := websocket.NetConn(r.Context(), ws, websocket.MessageBinary)
		defer ws.CloseNow() //nolint:errcheck // a stranger's connection
		back, err := s.nats.InProcessConn()
		if err != nil {
			return
		}
		defer back.Close()
		info := bufio.NewReaderSize(back, maxInfo)
		id, line, err := readInfo(info)
		if err != nil {
			return
		}
		conn := &agent{from: from.Addr().Unmap(), proven: func() { httpserver.Prove(r.Context()) }}
		s.mu.Lock()
		s.conns[id] = conn
		s.mu.Unlock()
		defer func() {
			s.mu.Lock()
			delete(s.conns, id)
			s.mu.Unlock()
		}()
		if _, err := front.Write(line); err != nil {
			return
		}
		forward(front, back)
	})
}

// readInfo reads the server's first line, which has its number of the connection.
func readInfo(r *bufio.Reader) (id uint64, line []byte, err error) {
	line, err = r.ReadSlice('\n')
	if err != nil {
		return 0, nil, err
	}
	var info struct {
		ID uint64 `json:"client_id"`
	}
	text, is := bytes.CutPrefix(line, []byte("INFO "))
	if !is || r.Buffered() > 0 {
		return 0, nil, errors.New("nats-server: no INFO")
	}
	err = json.Unmarshal(text, &info)
	return info.ID, line, err
}

// forward copies between two connections until one ends, and closes both.
func forward(front, back net.Conn) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = io.CopyBuffer(onlyWriter{back}, onlyReader{front}, make([]byte, forwardBuffer))
		back.Close()
	}()
	_, _ = io.CopyBuffer(onlyWriter{front}, onlyReader{back}, make([]byte, forwardBuffer))
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
