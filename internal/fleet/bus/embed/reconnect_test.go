package embed

import (
	"context"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"github.com/fullpipe-net/fullpipe/internal/fleet/bus"
	"github.com/fullpipe-net/fullpipe/internal/fleet/hub"
	"github.com/fullpipe-net/fullpipe/internal/httpserver"
	"github.com/fullpipe-net/fullpipe/internal/serverlog"
	"github.com/fullpipe-net/fullpipe/internal/testenv/must"
)

// TestServer_AllAgentsReconnect starts a hub that 64 agents wait for, four times its places for clients that have
// proven nothing, while 32 other hosts connect twice a second and send nothing. All agents get in. TestBankFleet does
// so with 1,000 agents and a real hub.
func TestServer_AllAgentsReconnect(t *testing.T) {
	t.Parallel()
	const places, agents, silent = 16, 64, 32
	server, err := Start(func(_ context.Context, nkey string, _ netip.Addr) (string, error) { return nkey, nil }, "secret")
	if err != nil {
		t.Fatal(err)
	}
	defer server.Shutdown()
	handler := http.NewServeMux()
	handler.Handle(bus.Path, server.Handler())
	ca := must.Get(hub.NewCA([]string{"127.0.0.1"}))(t)
	l := must.Get(net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)}))(t)
	log := serverlog.New(serverlog.Config{Out: io.Discard})
	defer log.Close()
	site := httpserver.Start(l, httpserver.Config{Handler: handler, TLS: ca.TLS(), MaxConns: 1 << 20,
		MaxUnproven: places, Log: log})
	defer site.Close()

	attack, end := context.WithCancel(t.Context())
	var work sync.WaitGroup
	defer work.Wait()
	defer end()
	for i := range silent {
		host := net.IPv4(127, 8, byte(i/256), byte(i)) // one connection each, as the agents
		work.Go(func() { staySilent(attack, l.Addr().String(), host) })
	}
	connected := make(chan bool, agents)
	begin := time.Now()
	for i := range agents {
		work.Go(func() {
			from := distant{net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 9, byte(i/250), byte(1+i%250))}}}
			conn, err := dialFrom(from, "wss://"+l.Addr().String(), nats.Secure(bus.PinnedTLS(bus.Pin(ca.Cert))),
				nats.ConnectHandler(func(*nats.Conn) { connected <- true }))
			if err != nil {
				t.Error(err)
				return
			}
			defer conn.Close()
			<-attack.Done()
		})
	}
	late := time.After(2 * time.Minute)
	for n := range agents {
		select {
		case <-connected:
		case <-late:
			t.Fatalf("%d of %d agents are connected", n, agents)
		}
	}
	t.Logf("%v", time.Since(begin))
}

// distant dials from a host that is 50 ms away.
type distant struct{ net.Dialer }

func (d distant) Dial(network, address string) (net.Conn, error) {
	c, err := d.Dialer.Dial(network, address)
	return delayed{c}, err
}

type delayed struct{ net.Conn }

func (d delayed) Write(b []byte) (int, error) {
	time.Sleep(50 * time.Millisecond)
	return d.Conn.Write(b)
}

// dialFrom connects an agent as bus.Dialer does.
func dialFrom(from nats.CustomDialer, url string, more ...nats.Option) (*nats.Conn, error) {
	key, err := nkeys.CreateUser()
	if err != nil {
		return nil, err
	}
	public, err := key.PublicKey()
	if err != nil {
		return nil, err
	}
	return nats.Connect(url, append(more, nats.Nkey(public, key.Sign), nats.SetCustomDialer(from),
		nats.ProxyPath(bus.Path), nats.RetryOnFailedConnect(true), nats.MaxReconnects(-1), nats.Timeout(10*time.Second),
		nats.CustomReconnectDelay(func(attempts int) time.Duration {
			wait := min(500*time.Millisecond<<min(attempts, 6), 16*time.Second)
			return wait + rand.N(wait)
		}))...)
}

// staySilent keeps a connection that sends nothing. It connects again when the server closes it.
func staySilent(ctx context.Context, address string, from net.IP) {
	dialer := &net.Dialer{LocalAddr: &net.TCPAddr{IP: from}}
	for ctx.Err() == nil {
		c, err := dialer.DialContext(ctx, "tcp", address)
		if err == nil {
			end := context.AfterFunc(ctx, func() { c.Close() })
			_, _ = io.Copy(io.Discard, c) // until the server evicts it
			end()
			c.Close()
		}
		time.Sleep(500 * time.Millisecond)
	}
}
