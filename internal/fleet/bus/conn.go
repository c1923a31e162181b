package bus

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"
)

var errTooLarge = errors.New("the message is too large")

// Path is where a hub's HTTPS server has the agents' WebSocket.
const Path = "/nats"

// Token lets an agent join. Its text is "fph1." and base64 of JSON.
type Token struct {
	URLs   []string `json:"u"`           // of the hub, https://HOST:PORT
	Secret string   `json:"s"`           // one-time, or with a number of uses
	Pin    string   `json:"p,omitempty"` // SHA-256 of the hub CA's public key; "": a public certificate
}

const tokenPrefix = "fph1."

// String returns the token's text.
func (t Token) String() string {
	text, err := json.Marshal(t)
	if err != nil {
		panic(err) // impossible: strings only
	}
	return tokenPrefix + base64.RawURLEncoding.EncodeToString(text)
}

// ParseToken parses a token's text. The errors do not quote it, because it has a secret.
func ParseToken(text string) (t Token, err error) {
	body, ok := strings.CutPrefix(strings.TrimSpace(text), tokenPrefix)
	raw, bad := base64.RawURLEncoding.DecodeString(body)
	if !ok || bad != nil || len(body) > 8<<10 {
		return t, errors.New("not a token: it begins with fph1. and is one word")
	}
	if err := json.Unmarshal(raw, &t); err != nil {
		return t, errors.New("not a token: it was cut or changed")
	}
	if len(t.URLs) == 0 || t.Secret == "" {
		return t, errors.New("not a token: it has no address or no secret")
	}
	for _, text := range t.URLs {
		u, err := url.Parse(text)
		if err != nil || u.Scheme != "https" || u.Host == "" {
			return t, errors.New("not a token: an address in it is not https://HOST:PORT")
		}
	}
	return t, nil
}

// Pin returns the pin of a CA's certificate.
func Pin(ca *x509.Certificate) string {
	sum := sha256.Sum256(ca.RawSubjectPublicKeyInfo)
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// PinnedTLS returns a configuration for a hub with the pinned CA. The server's certificate must be by that CA and
// for the server's name. With an empty pin it must be one that the system trusts.
func PinnedTLS(pin string) *tls.Config {
	if pin == "" {
		return &tls.Config{MinVersion: tls.VersionTLS13}
	}
	return &tls.Config{
		MinVersion:         tls.VersionTLS13,
		InsecureSkipVerify: true, // VerifyConnection checks the chain and the name
		VerifyConnection: func(s tls.ConnectionState) error {
			i := slices.IndexFunc(s.PeerCertificates, func(c *x509.Certificate) bool { return c.IsCA && Pin(c) == pin })
			if i < 1 {
				return errors.New("the server's certificate is not by the hub that made the token")
			}
			roots := x509.NewCertPool()
			roots.AddCert(s.PeerCertificates[i])
			_, err := s.PeerCertificates[0].Verify(x509.VerifyOptions{Roots: roots, DNSName: s.ServerName})
			return err
		},
	}
}

// Conn is an agent's connection. It reconnects for ever.
type Conn struct {
	agent string
	dial  func() (*nats.Conn, error)

	mu     sync.Mutex // guards the fields below
	nats   *nats.Conn
	served map[string]func(data []byte) any // by kind
	closed bool
}

// Dialer configures an agent's connection.
type Dialer struct {
	Agent string // ID
	Key   nkeys.KeyPair
	URLs  []string    // https://HOST:PORT of the hub, or nats:// of a server of the user's
	TLS   *tls.Config // of the hub; a server of the user's has what its URL says
	// Connected is called after each connect, Lost after each loss. They must not block.
	Connected func()
	Lost      func(error)
}

// connectTime limits one connect. A busy hub takes some seconds to ask its store; an agent that gave up earlier would
// come back and make it busier.
const connectTime = 10 * time.Second

// Reconnects wait between minWait and maxWait, with as much jitter.
const (
	minWait = 500 * time.Millisecond
	maxWait = 4 * time.Second
)

// Dial starts a connection. It returns at once, also when no server is reachable yet.
func (d Dialer) Dial() (*Conn, error) {
	public, err := d.Key.PublicKey()
	if err != nil {
		return nil, err
	}
	c := &Conn{agent: d.Agent, served: map[string]func([]byte) any{}}
	options := []nats.Option{
		nats.Name("agent " + d.Agent),
		nats.Nkey(public, d.Key.Sign),
		nats.CustomInboxPrefix(Inbox(d.Agent)),
		nats.RetryOnFailedConnect(true),
		nats.MaxReconnects(-1),
		nats.IgnoreAuthErrorAbort(), // a removed agent may be added again
		nats.Timeout(connectTime),
		nats.PingInterval(HereEvery),
		nats.MaxPingsOutstanding(2),
		nats.ReconnectBufSize(-1), // nothing is sent without a connection: the outbox has it
		nats.CustomReconnectDelay(func(attempts int) time.Duration {
			wait := min(minWait<<min(attempts, 6), maxWait)
			return wait + rand.N(wait)
		}),
		nats.ConnectHandler(func(conn *nats.Conn) {
			c.use(conn) // before Connect returns
			d.Connected()
		}),
		nats.ReconnectHandler(func(*nats.Conn) { d.Connected() }),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) { d.Lost(err) }),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { d.Lost(err) }),
	}
	if slices.ContainsFunc(d.URLs, func(text string) bool { return strings.HasPrefix(text, "https://") }) {
		options = append(options, nats.ProxyPath(Path), nats.Secure(d.TLS))
	}
	c.dial = func() (*nats.Conn, error) { return nats.Connect(strings.Join(servers(d.URLs), ","), options...) }
	conn, err := c.dial()
	if err != nil {
		return nil, err
	}
	c.use(conn)
	return c, nil
}

// use takes a new connection with its subscriptions.
func (c *Conn) use(conn *nats.Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.nats == conn {
		return
	}
	c.nats = conn
	for kind, serve := range c.served {
		_ = c.subscribe(kind, serve) // it fails on a closed connection only
	}
	if c.closed {
		conn.Close()
	}
}

// Leave closes the connection for a time, so that it takes no place at the hub, and then connects
// again.
func (c *Conn) Leave(pause time.Duration) {
	left := c.current()
	left.SetDisconnectErrHandler(nil)
	left.Close()
	time.AfterFunc(pause, func() {
		if conn, err := c.dial(); err == nil { // the options are valid
			c.use(conn)
		}
	})
}

func (c *Conn) current() *nats.Conn {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.nats
}

// servers returns the addresses of URLs as NATS has them.
func servers(urls []string) (all []string) {
	for _, text := range urls {
		if rest, ok := strings.CutPrefix(text, "https://"); ok {
			text = "wss://" + rest
		}
		all = append(all, text)
	}
	return all
}

// SetURLs replaces the URLs of the hubs for the next connect. It reports whether it did: the URL in use is kept, and a
// list with a URL of no use is ignored.
func (c *Conn) SetURLs(urls []string) bool {
	unusable := func(text string) bool { return !usable(text) }
	if len(urls) == 0 || len(urls) > MaxURLs || slices.ContainsFunc(urls, unusable) {
		return false
	}
	all := servers(urls)
	conn := c.current()
	if now := conn.ConnectedUrl(); now != "" && !slices.Contains(all, now) {
		all = append(all, now)
	}
	return conn.SetServerPool(all) == nil
}

// Ask sends a message to the hub and decodes the reply.
func (c *Conn) Ask(ctx context.Context, kind string, message, reply any) error {
	return c.AskRaw(ctx, kind, Encode(message), reply)
}

// AskRaw is Ask with a message that is encoded already.
func (c *Conn) AskRaw(ctx context.Context, kind string, message []byte, reply any) error {
	m, err := c.current().RequestWithContext(ctx, Up(c.agent, kind), message)
	if err != nil {
		return fmt.Errorf("%s: %w", kind, err)
	}
	return Decode(m.Data, reply)
}

// Send sends a message to the hub and waits for nothing.
func (c *Conn) Send(kind string, message any) error {
	return c.current().Publish(Up(c.agent, kind), Encode(message))
}

// Serve calls serve for each request of the hub, one at a time, and replies with its result; nil is no reply.
func (c *Conn) Serve(kind string, serve func(data []byte) any) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.served[kind] = serve
	return c.subscribe(kind, serve)
}

// subscribe is Serve on the connection of now. mu is locked.
func (c *Conn) subscribe(kind string, serve func(data []byte) any) error {
	orders, err := c.nats.Subscribe(Down(c.agent, kind), func(m *nats.Msg) {
		if reply := serve(m.Data); m.Reply != "" && reply != nil {
			_ = m.Respond(Encode(reply)) // the hub times out
		}
	})
	if err != nil {
		return err
	}
	return orders.SetPendingLimits(maxPendingOrders, maxPendingBytes)
}

// Limits on the orders that wait for an agent. A hub sends one at a time.
const (
	maxPendingOrders = 64
	maxPendingBytes  = 4 << 20
)

// Close closes the connection.
func (c *Conn) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	c.nats.Close()
}
