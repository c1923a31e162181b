package probe_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/probe"
	"github.com/fullpipe-net/fullpipe/internal/server"
	"github.com/fullpipe-net/fullpipe/internal/testenv/must"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// Each server knows the key and misbehaves at one step.
func TestClient_SurvivesMisbehavingServers(t *testing.T) {
	cert := must.Get(probe.NewCertificate())(t)
	hello := probe.Hello{Version: probe.Version, Limits: probe.DefaultLimits()}
	// after simulates a server that sends hello and then calls then.
	after := func(hello probe.Hello, then func(conn net.Conn)) func(net.Conn) {
		return func(tcp net.Conn) {
			io.ReadFull(tcp, make([]byte, probe.PrefaceSize))
			tcp.Write([]byte{probe.AnswerFullpipe})
			conn, err := probe.SecureServer(context.Background(), tcp, cert, key)
			if err == nil && probe.WriteMessage(conn, probe.KindHello, hello) == nil {
				then(conn)
			}
		}
	}
	replies := func(kindOf byte, body any, then func(net.Conn)) func(net.Conn) {
		return after(hello, func(conn net.Conn) {
			probe.ReadMessage(conn, 1<<16)
			if kindOf == 'A' {
				probe.WriteMessage(conn, probe.KindAccept, body)
			} else {
				probe.WriteMessage(conn, probe.KindResult, body)
			}
			then(conn)
		})
	}
	token := probe.NewToken()
	tokens := []string{string(token[:])}
	nothing := func(net.Conn) {}
	l, _ := net.Listen("tcp", "127.0.0.1:0")
	refusing := l.Addr().(*net.TCPAddr).Port
	l.Close()
	readForever := answering(t, untilClosed)
	resetting := answering(t, func(conn net.Conn) { conn.(*net.TCPConn).SetLinger(0) })
	const beyondBuffers = 64 << 20 // so that a sender notices what happens to its connection
	port := func(address string) int { a, _ := net.ResolveTCPAddr("tcp", address); return a.Port }

	progress := func(then func(net.Conn)) func(net.Conn) {
		return replies('A',
			probe.Accept{Tokens: tokens, Port: port(readForever)}, then)
	}
	result := func(text string) func(net.Conn) {
		var wire bytes.Buffer // compression takes longer than the clients' timeout in these tests
		probe.WriteMessage(&wire, probe.KindResult, json.RawMessage(text))
		return progress(func(conn net.Conn) {
			conn.Write(wire.Bytes())
			untilClosed(conn)
		})
	}

	t.Parallel()
	for _, tt := range []struct {
		name, want string
		server     func(net.Conn)
		direction  transfer.Direction
	}{
		{"another version", "version 9", after(probe.Hello{Version: 9}, untilClosed), transfer.Up},
		{"newer versions only", "versions 2 to 9",
			after(probe.Hello{Version: 2, Versions: &probe.Versions{Least: 2, Most: 9}}, untilClosed), transfer.Up},
		{"newer versions too", "not today", after(probe.Hello{Version: 1, Versions: &probe.Versions{Least: 1, Most: 9},
			Limits: probe.DefaultLimits()}, func(conn net.Conn) {
			m, err := probe.ReadMessage(conn, 1<<16)
			var o probe.Offer
			if err == nil && m.Decode(probe.KindOffer, &o) == nil && o.Version == 1 {
				probe.WriteMessage(conn, probe.KindAccept, probe.Accept{Error: "not today"})
			}
		}), transfer.Up},
		{"control codes in its name", "names that no server has", after(probe.Hello{Version: 1, Software: "\x1b[2J"},
			untilClosed), transfer.Up},
		{"leaves on an offer", "closed the connection", after(hello, func(conn net.Conn) { probe.ReadMessage(conn, 1<<16) }),
			transfer.Up},
		{"sends a result instead of accept", "expected", replies('R', probe.Answer{}, nothing), transfer.Up},
		{"no tokens", "0 stream tokens", replies('A', probe.Accept{}, untilClosed), transfer.Up},
		{"refuses", "not today", replies('A', probe.Accept{Error: "not today"}, untilClosed), transfer.Up},
		{"refuses a field", "Far.MSS", replies('A', probe.Accept{Field: "Far.MSS", Error: "too small"}, untilClosed),
			transfer.Up},
		{"data port not there", "refused", replies('A', probe.Accept{Tokens: tokens, Port: refusing}, untilClosed),
			transfer.Up},
		{"gone during a transfer", "closed the connection", replies('A',
			probe.Accept{Tokens: tokens, Port: port(readForever)},
			nothing), transfer.Up},
		{"data connection reset", "closed the connection", replies('A', probe.Accept{Tokens: tokens, Port: port(resetting)},
			untilClosed), transfer.Up},
		{"a token of another length", "token of 3 bytes", replies('A', probe.Accept{Tokens: []string{"xyz"}}, untilClosed),
			transfer.Up},
		{"floods an answer with warnings", "warnings is impossible", replies('A', probe.Accept{Tokens: tokens,
			Warnings: make([]string, 100)}, untilClosed), transfer.Up},
		{"a warning of 5000 bytes", "warnings is impossible", result(`{"warnings":["` + strings.Repeat("x", 5000) + `"]}`),
			transfer.Up},
		{"a port that cannot be", "port 99999", replies('A', probe.Accept{Tokens: tokens, Port: 99999}, untilClosed),
			transfer.Up},
		{"more streams than asked", "streams is impossible", result(`{"end":{"streams":[{},{}]}}`), transfer.Up},
		{"half a million streams", "a result of 999999", result(`{"end":{"streams":[` + strings.Repeat("{},", 999_998) +
			`{}]}}`), transfer.Up},
		{"half a million samples", "a result of 500001", result(`{"end":{"streams":[{"samples":[` + strings.Repeat("{},",
			499_999) + `{}]}]}}`), transfer.Up},
		{"a string without end", "more than", result(`{"error":"` + strings.Repeat("x", 8<<20) + `"}`), transfer.Up},
		{"times of two days", "last_ns is impossible", result(`{"end":{"streams":[{"last_ns":200000000000000}]}}`),
			transfer.Up},
		{"a negative count", "bytes is impossible", result(`{"end":{"streams":[{"bytes":-5}]}}`), transfer.Up},
		{"a sample of two days", "samples[0].at_ns is impossible",
			result(`{"end":{"streams":[{"samples":[{"at_ns":200000000000000}]}]}}`), transfer.Up},
		{"a negative interval", "interval.bytes is impossible", progress(func(conn net.Conn) {
			probe.WriteMessage(conn, probe.KindProgress, json.RawMessage(`{"interval":{"bytes":-1}}`))
			untilClosed(conn)
		}), transfer.Up},
		{"a flood of progress", "floods", progress(func(conn net.Conn) {
			for probe.WriteMessage(conn, probe.KindProgress, json.RawMessage(`{"interval":{"end_ns":1,"bytes":1}}`)) == nil {
			}
		}), transfer.Up},
		{"sends nothing", "no answer", replies('A',
			probe.Accept{Tokens: tokens, Port: port(readForever)}, untilClosed),
			transfer.Down},
		{"sends nothing but says it lives", "stalled", replies('A',
			probe.Accept{Tokens: tokens, Port: port(readForever)},
			func(conn net.Conn) {
				for probe.WriteMessage(conn, probe.KindProgress, struct{}{}) == nil {
					time.Sleep(100 * time.Millisecond) // like a healthy server
				}
			}), transfer.Down},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			address := answering(t, tt.server)
			startedAt := time.Now()
			c, err := far(address).Connect(context.Background())
			if err == nil {
				defer c.Close()
				_, err = transfer.Run(context.Background(), c, transfer.Spec{Direction: tt.direction, Bytes: beyondBuffers}, nil)
			}
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%v; want %q", err, tt.want)
			}
			var u *transfer.Unsupported
			if err != nil && !errors.As(err, &u) && !strings.Contains(err.Error(), address) {
				t.Errorf("%v does not name %s", err, address)
			}
			if took := time.Since(startedAt); took > time.Minute {
				t.Errorf("it took %v to say so", took)
			}
		})
	}
}

// Misbehaving clients. An honest client is served concurrently.
func TestSession_SurvivesMisbehavingClients(t *testing.T) {
	t.Parallel()
	gone := make(chan struct{}, 100)
	address := serve(t, server.Config{Key: key, Clients: 20, Event: func(e server.Event) {
		if e.Kind == "gone" || e.Err != nil && strings.HasPrefix(e.Err.Error(), "no proof") {
			gone <- struct{}{}
		}
	}})
	ctx := context.Background()
	var conns []net.Conn
	defer func() {
		for _, c := range conns {
			c.Close()
		}
	}()
	dial := func(preface string) net.Conn {
		conn := must.Get(net.Dial("tcp", address))(t)
		conns = append(conns, conn)
		io.WriteString(conn, preface)
		return conn
	}
	secured := func(k probe.Key) (net.Conn, error) {
		conn := dial(string(probe.Marker[:]))
		io.ReadFull(conn, make([]byte, 1))
		return probe.SecureClient(ctx, conn, k)
	}
	dial("")
	dial("half a preface")
	token := probe.NewToken()
	dial(string(token[:]))
	dial(strings.Repeat("x", 1000))
	dial(string(probe.Marker[:]) + strings.Repeat("garbage", 1000))
	if _, err := secured(probe.NewKey()); !errors.Is(err, probe.ErrWrongKey) {
		t.Errorf("with another key: %v", err)
	}
	wait := func() {
		t.Helper()
		select {
		case <-gone:
		case <-time.After(10 * time.Second):
			t.Fatal("the server still keeps a client that it should have shed")
		}
	}
	wait()
	wait()
	for _, tt := range []struct {
		name string
		send func(conn net.Conn)
	}{
		{"a frame of 4 GB", func(conn net.Conn) {
			conn.Write(binary.BigEndian.AppendUint32(nil, 1<<32-1))
			conn.Write([]byte("O{}"))
		}},
		{"an empty frame", func(conn net.Conn) { conn.Write(make([]byte, 5)) }},
		{"an offer that is no JSON", func(conn net.Conn) { conn.Write([]byte("\x00\x00\x00\x03O{x")) }},
		{"a server's message", func(conn net.Conn) { probe.WriteMessage(conn, probe.KindHello, probe.Hello{}) }},
		{"an offer during a transfer", func(conn net.Conn) {
			offer := probe.Offer{Spec: transfer.Spec{Direction: transfer.Up, Bytes: 1}}
			probe.WriteMessage(conn, probe.KindOffer, offer)
			probe.WriteMessage(conn, probe.KindOffer, offer)
		}},
		{"leaving before the data", func(conn net.Conn) {
			probe.WriteMessage(conn, probe.KindOffer, probe.Offer{Spec: transfer.Spec{Direction: transfer.Up, Bytes: 1}})
			conn.Close()
		}},
	} {
		conn := must.Get(secured(key))(t)
		probe.ReadMessage(conn, 1<<16) // hello
		tt.send(conn)
		t.Log(tt.name)
		wait()
	}
	// The server refuses these offers and continues the session.
	conn := must.Get(secured(key))(t)
	probe.ReadMessage(conn, 1<<16)
	for _, spec := range []transfer.Spec{
		{}, {Direction: "sideways", Bytes: 1}, {Direction: transfer.Up, Time: -1}, {Direction: transfer.Up,
			Time: 1000 * time.Hour},
		{Direction: transfer.Up, Bytes: 1, Streams: 1 << 30}, {Direction: transfer.Up, Bytes: 1, Streams: -1},
		{Direction: transfer.Up, Bytes: 1, Far: transfer.Socket{ReceiveBuffer: 1 << 40}},
		{Direction: transfer.Up, Bytes: 1, Far: transfer.Socket{Congestion: "../../etc/passwd"}},
		{Direction: transfer.Up, Bytes: 1, Far: transfer.Socket{MSS: 1}},
		{Direction: transfer.Up, Bytes: 1, Program: transfer.Program{WriteBps: -1}},
		{Direction: transfer.Up, Bytes: 1, Program: transfer.Program{WriteBytes: -5}},
	} {
		probe.WriteMessage(conn, probe.KindOffer, probe.Offer{Spec: spec})
		m := must.Get(probe.ReadMessage(conn, 1<<16))(t)
		var a probe.Accept
		if err := m.Decode(probe.KindAccept, &a); err != nil || a.Field == "" || len(a.Tokens) > 0 {
			t.Errorf("offer %+v: answer %+v, %v", spec, a, err)
		}
	}
	r, err := transfer.Run(ctx, connect(t, address, key), transfer.Spec{Direction: transfer.Up, Bytes: 100_000}, nil)
	if err != nil {
		t.Fatalf("an honest client among them: %v", err)
	}
	checkResult(t, r, 100_000)
}

func TestSession_RefusesTooManyStreams(t *testing.T) {
	c := connect(t, serve(t, server.Config{Key: key, Streams: 4}), key)
	spec := transfer.Spec{Direction: transfer.Up, Bytes: 1000, Streams: 5}
	if _, err := transfer.Run(context.Background(), c, spec, nil); err == nil || !strings.Contains(err.Error(),
		"carries at most 4") {
		t.Error(err)
	}
	for range 3 { // reservations are freed after each
		spec.Streams = 4
		if _, err := transfer.Run(context.Background(), c, spec, nil); err != nil {
			t.Error(err)
		}
	}
}

func TestServer_RefusesTooManyClients(t *testing.T) {
	address := serve(t, server.Config{Key: key, Clients: 1})
	connect(t, address, key)
	_, err := far(address).Connect(context.Background())
	if err == nil || !strings.Contains(err.Error(), "as many clients") {
		t.Error(err)
	}
}

// A queueing server must not move the client back, send an impossible place, or send places without end. An
// interrupt ends the wait in each case.
func TestClient_RejectsImpossibleQueues(t *testing.T) {
	t.Parallel()
	cert := must.Get(probe.NewCertificate())(t)
	at := func(place int) probe.Hello { return probe.Hello{Version: probe.Version, Busy: true, Place: place} }
	queue := func(hello func(n int) probe.Hello) string {
		return answering(t, func(tcp net.Conn) {
			io.ReadFull(tcp, make([]byte, probe.PrefaceSize))
			tcp.Write([]byte{probe.AnswerFullpipe})
			conn, err := probe.SecureServer(context.Background(), tcp, cert, key)
			for n := 0; err == nil; n++ {
				err = probe.WriteMessage(conn, probe.KindHello, hello(n))
			}
		})
	}
	for name, c := range map[string]struct {
		hello  func(n int) probe.Hello
		want   string
		places int // at most
	}{
		"back and forth": {func(n int) probe.Hello { return at(1 + n%2) }, "at place 2; the last possible place is 1", 1},
		"an endless one": {func(n int) probe.Hello { return at(1 << 40) }, "the last possible place is 1000", 0},
		"a flood":        {func(n int) probe.Hello { return at(1) }, "floods", 1},
		"a long one":     {func(n int) probe.Hello { return at(max(1000-n, 1)) }, "floods", 1000},
		"a time before 1970": {func(n int) probe.Hello {
			h := at(1)
			h.TimeNs = int64(-n)
			return h
		}, "a hello from before 1970", 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			places := 0
			f := far(queue(c.hello))
			f.OnQueued = func(int) { places++ }
			client, err := f.Connect(t.Context())
			if err == nil {
				client.Close()
			}
			if err == nil || !strings.Contains(err.Error(), c.want) || places > c.places {
				t.Errorf("%d places, %v; want %q", places, err, c.want)
			}
		})
	}
	t.Run("interrupted", func(t *testing.T) {
		t.Parallel()
		ctx, cancel := context.WithCancelCause(t.Context())
		interrupted := errors.New("interrupted")
		f := far(queue(func(n int) probe.Hello {
			if n > 50 { // during the wait
				cancel(interrupted)
			}
			return at(1)
		}))
		f.OnQueued = func(int) {}
		if _, err := f.Connect(ctx); !errors.Is(err, interrupted) {
			t.Error(err)
		}
	})
}
