package iperf3

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/testenv/must"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// ask opens a test with the given parameters and returns the server's reply.
func ask(t *testing.T, address, params string) (*control, Cookie, error) {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	cookie := NewCookie()
	conn.Write(cookie[:])
	c := &control{conn: conn}
	must.Get(c.expect(t.Context(), 5*time.Second, ParamExchange))(t)
	conn.Write(frame(params))
	_, err = c.expect(t.Context(), 5*time.Second, CreateStreams)
	return c, cookie, err
}

// alive checks that a server still serves a test.
func alive(t *testing.T, address string) {
	t.Helper()
	peer := NewPeer(address)
	defer peer.Close()
	if r, err := transfer.Run(context.Background(), peer, transfer.Spec{Direction: transfer.Up, Bytes: 10000},
		nil); err != nil ||
		!r.Complete {
		t.Errorf("afterwards: %v", err)
	}
}

// CVE-2024-53580: a JSON value of an unexpected type crashed the server, in parameters and results.
func TestServer_SurvivesCVE202453580(t *testing.T) {
	address := serve(t, &Server{})
	for _, params := range []string{`{"tcp":true,"time":"1"}`, `{"tcp":true,"time":{},"parallel":[]}`,
		`{"tcp":true,"title":7}`, `{"tcp":true,"congestion":{}}`, `[]`} {
		var refused *RemoteError
		if _, _, err := ask(t, address, params); !errors.As(err, &refused) || refused.Code != CodeParams {
			t.Errorf("%s: %v", params, err)
		}
	}
	for _, results := range []string{`{}`, `[]`,
		`{"cpu_util_total":"1","cpu_util_user":[],"cpu_util_system":{},"sender_has_retransmits":"","streams":7}`,
		`{"cpu_util_total":0,"cpu_util_user":0,"cpu_util_system":0,"sender_has_retransmits":0,"streams":[{"id":"1","bytes":{},"retransmits":[]}]}`} {
		c, cookie, err := ask(t, address, `{"tcp":true,"time":1,"parallel":1}`)
		if err != nil {
			t.Fatal(err)
		}
		stream := must.Get(net.Dial("tcp", address))(t)
		stream.Write(cookie[:])
		must.Do(t, errors.Join(c.awaitStart(t.Context(), Params{}), c.send(t.Context(), TestEnd)))
		must.Get(c.expect(t.Context(), 5*time.Second, ExchangeResults))(t)
		c.conn.Write(frame(results))
		if _, err := c.readFrame(t.Context(), 5*time.Second, MaxServerResults, "results"); err == nil {
			t.Errorf("%s was taken for results", results)
		}
		stream.Close()
	}
	alive(t, address)
}

// CVE-2025-54349 and CVE-2025-54350: a token of a certain length wrote beyond a buffer; one that was not base64
// crashed the server. Here its length is limited, and servers without users ignore it.
func TestServer_SurvivesCVE202554349And54350(t *testing.T) {
	address := serve(t, &Server{})
	for length, taken := range map[int]bool{1: true, 255: true, 256: true, 257: true, 1023: true, 1024: true, 4095: true,
		4096: true, 4097: false} {
		_, _, err := ask(t, address, fmt.Sprintf(`{"tcp":true,"time":1,"authtoken":%q}`, strings.Repeat("A", length)))
		if (err == nil) != taken {
			t.Errorf("a token of %d bytes: %v", length, err)
		}
	}
	for _, token := range []string{"", "=", "====", "A===", "%%%%", "A\u0000B", "\u00e4\u00f6"} {
		if _, _, err := ask(t, address, fmt.Sprintf(`{"tcp":true,"time":1,"authtoken":%q}`, strings.ReplaceAll(token, "\x00",
			"?"))); err != nil {
			t.Errorf("the token %q: %v", token, err)
		}
	}
	alive(t, address)
}

// CVE-2025-54351: skip_rx_copy (MSG_TRUNC) with a length beyond the buffer. Received bytes are counted without
// being copied; the announced size is ignored.
func TestServer_SurvivesCVE202554351(t *testing.T) {
	for _, size := range []int{1, 1000, 128 << 10, MaxLen} {
		reports := make(chan Report, 1)
		address := serve(t, &Server{Report: func(r Report) { reports <- r }})
		c, cookie, err := ask(t, address, fmt.Sprintf(`{"tcp":true,"num":3000000,"parallel":1,"skip_rx_copy":1,"len":%d}`,
			size))
		if err != nil {
			t.Fatal(err)
		}
		stream := must.Get(net.Dial("tcp", address))(t)
		stream.Write(cookie[:])
		must.Do(t, c.awaitStart(t.Context(), Params{}))
		stream.Write(make([]byte, 3000000))
		mine := Results{Streams: []StreamResult{{ID: 1, Bytes: 3000000}}}
		must.Get(c.finishTest(t.Context(), mine, time.Second))(t)
		stream.Close()
		if span, _ := (<-reports).Outcomes[0].TCP.Received(); span.Bytes != 3000000 {
			t.Errorf("len %d: %d bytes were counted", size, span.Bytes)
		}
	}
}
