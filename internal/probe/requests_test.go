package probe_test

import (
	"context"
	"errors"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/probe"
	"github.com/fullpipe-net/fullpipe/internal/server"
	"github.com/fullpipe-net/fullpipe/internal/testenv"
	"github.com/fullpipe-net/fullpipe/internal/testenv/must"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// load returns a load of requests over two streams.
func load(r transfer.Requests, time time.Duration) transfer.Spec {
	return transfer.Spec{Direction: transfer.Up, Streams: 2, Time: time, Requests: r}
}

var (
	overOpen = transfer.Requests{RequestBytes: 200, ResponseBytes: 3000}
	overNew  = transfer.Requests{RequestBytes: 20_000, ResponseBytes: 400, NewConnections: true}
)

func TestClient_Requests(t *testing.T) {
	for name, r := range map[string]transfer.Requests{"open connections": overOpen, "new connections": overNew,
		"paced": {RequestBytes: 1, ResponseBytes: 1, PerSecond: 50}} {
		t.Run(name, func(t *testing.T) {
			var events []*transfer.Result
			seen := make(chan *transfer.Result, 10)
			c := connect(t, serve(t, server.Config{Key: key, Event: func(e server.Event) {
				if e.Kind == "transfer" {
					seen <- e.Result
				}
			}}), key)
			for range 2 { // the connection stays usable
				result, err := transfer.Run(t.Context(), c, load(r, 300*time.Millisecond), nil)
				if err != nil || !result.Complete {
					t.Fatal(err)
				}
				events = append(events, <-seen)
				l := result.Load
				count := l.Profile.Count
				if count == 0 || l.Failed != 0 || l.Profile.P50 <= 0 || l.Profile.Max < l.Profile.P50 || !l.FarKnown {
					t.Errorf("%+v", l)
				}
				if far := result.Far.Responses; far.Requests < count || far.Requests > count+2 {
					t.Errorf("%d requests, %d responses", count, far.Requests)
				}
				if r.NewConnections != (l.Connections >= count) {
					t.Errorf("%d connections for %d requests", l.Connections, count)
				}
				if r.PerSecond > 0 && count > 15 {
					t.Errorf("%d requests, 15 were due", count)
				}
			}
			if e := events[0]; !e.Complete || e.Far.Moved < int64(r.RequestBytes+r.ResponseBytes) {
				t.Errorf("the server's event: %+v", e)
			}
		})
	}
}

// A server without Hello.Requests would start another transfer.
func TestHello_RefusesRequests(t *testing.T) {
	limits := probe.DefaultLimits()
	limits.Bps = 1e6
	for _, c := range []struct {
		field string
		hello probe.Hello
		spec  transfer.Spec
	}{
		{"Requests", probe.Hello{Limits: probe.DefaultLimits()}, load(overOpen, time.Second)},
		{"", probe.Hello{Limits: probe.DefaultLimits(), Requests: true}, load(overOpen, time.Second)},
		{"Requests.PerSecond", probe.Hello{Limits: limits, Requests: true}, load(overOpen, time.Second)},
		{"Requests.PerSecond", probe.Hello{Limits: limits, Requests: true},
			load(transfer.Requests{RequestBytes: 1, ResponseBytes: 3000, PerSecond: 50}, time.Second)},
		{"", probe.Hello{Limits: limits, Requests: true},
			load(transfer.Requests{RequestBytes: 1, ResponseBytes: 3000, PerSecond: 40}, time.Second)},
		{"Requests.RequestBytes", probe.Hello{Requests: true},
			load(transfer.Requests{RequestBytes: 1 << 30, ResponseBytes: 1}, time.Second)},
		{"Requests.ResponseBytes", probe.Hello{Requests: true}, load(transfer.Requests{RequestBytes: 1}, time.Second)},
	} {
		err := c.hello.Check(c.spec)
		var refused *transfer.Unsupported
		if errors.As(err, &refused); (c.field == "") != (err == nil) || refused != nil && refused.Field != c.field {
			t.Errorf("%+v: %v; want %q", c.spec.Requests, err, c.field)
		}
	}
}

// TestServer_BoundsRequests checks the limits of a server while a client sends as fast as it can.
func TestServer_BoundsRequests(t *testing.T) {
	for name, r := range map[string]transfer.Requests{"open": overOpen, "new": overNew} {
		c := connect(t, serve(t, server.Config{Key: key, Offered: func(string, transfer.Spec) (probe.Allowance, error) {
			return probe.Allowance{Bytes: 100_000}, nil
		}}), key)
		result, err := transfer.Run(t.Context(), c, load(r, 20*time.Second), nil)
		if err == nil || !strings.Contains(err.Error(), "as many bytes") || result == nil || result.Complete {
			t.Fatalf("%s: %v", name, err)
		}
		if moved := result.Far.Responses.Requests * int64(r.RequestBytes+r.ResponseBytes); moved > 100_000 {
			t.Errorf("%s: %d bytes", name, moved)
		}
	}
}

// TestRequests_ReleaseResources interrupts loads and counts descriptors.
func TestRequests_ReleaseResources(t *testing.T) {
	testenv.Need(t, testenv.Linux) // counts descriptors in /proc
	address := serve(t, server.Config{Key: key})
	open := func() int {
		entries := must.Get(os.ReadDir("/proc/self/fd"))(t)
		return len(entries)
	}
	run := func(r transfer.Requests) {
		c := must.Get(far(address).Connect(t.Context()))(t)
		defer c.Close()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		calls := 0
		began := time.Now()
		result, err := transfer.Run(ctx, c, load(r, time.Minute), func(transfer.Interval) {
			calls++
			if calls == 2 {
				cancel()
			}
		})
		if !errors.Is(err, context.Canceled) || result == nil || result.Complete || result.Load.Profile.Count == 0 {
			t.Errorf("interrupted: %v, %+v", err, result)
		}
		if took := time.Since(began); took > 30*time.Second {
			t.Errorf("ended after %v", took)
		}
	}
	run(overOpen)
	before := open()
	for range 3 {
		run(overOpen)
		run(overNew)
	}
	until := time.Now().Add(20 * time.Second)
	after := open()
	for ; after > before && time.Now().Before(until); after = open() {
		<-time.After(time.Millisecond)
	}
	if after > before {
		t.Errorf("%d descriptors before, %d after", before, after)
	}
}

// TestSession_SurvivesMisbehavingRequesters opens connections that send nothing, too much, or too many.
func TestSession_SurvivesMisbehavingRequesters(t *testing.T) {
	address := serve(t, server.Config{Key: key})
	for name, play := range map[string]func(token string) net.Conn{
		"silent": func(token string) net.Conn {
			conn, _ := net.Dial("tcp", address)
			conn.Write([]byte(token))
			return conn
		},
		"half a number": func(token string) net.Conn {
			conn, _ := net.Dial("tcp", address)
			conn.Write([]byte(token + "\x00"))
			return conn
		},
		"more than a request": func(token string) net.Conn {
			conn, _ := net.Dial("tcp", address)
			conn.Write([]byte(token + strings.Repeat("x", 100_000)))
			return conn
		},
	} {
		for _, r := range []transfer.Requests{overOpen, overNew} {
			conn := must.Get(net.Dial("tcp", address))(t)
			conn.Write(probe.Marker[:])
			conn.Read(make([]byte, 1))
			control := must.Get(probe.SecureClient(t.Context(), conn, key))(t)
			probe.ReadMessage(control, 1<<16)
			probe.WriteMessage(control, probe.KindOffer, probe.Offer{Spec: load(r, 100*time.Millisecond)})
			m, err := probe.ReadMessage(control, 1<<16)
			var a probe.Accept
			if err != nil || m.Decode(probe.KindAccept, &a) != nil || len(a.Tokens) != 2 {
				t.Fatalf("%v %+v", err, a)
			}
			var conns []net.Conn
			for i := range 100 { // a token is good for one connection, or with new connections for more
				if one := play(a.Tokens[i%2]); one != nil {
					conns = append(conns, one)
				}
			}
			probe.WriteMessage(control, probe.KindStop, struct{}{})
			for {
				m, err = probe.ReadMessage(control, 1<<21)
				var end probe.Answer
				if err != nil || m.Decode(probe.KindResult, &end) == nil {
					break
				}
			}
			if err != nil {
				t.Errorf("%s, %+v: the server ended the session: %v", name, r, err)
			}
			for _, c := range conns {
				c.Close()
			}
			control.Close()
		}
	}
	c := connect(t, address, key)
	if _, err := transfer.Run(t.Context(), c, load(overNew, 200*time.Millisecond), nil); err != nil {
		t.Errorf("an honest client after them: %v", err)
	}
}
