package httpserver

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/serverlog"
	"github.com/fullpipe-net/fullpipe/internal/testenv/must"
)

// TestServer_Unproven fills the slots of strangers five times over from some addresses. Clients
// that have shown who they are stay, more of them than strangers have slots, and another one comes
// in.
func TestServer_Unproven(t *testing.T) {
	const limit, proven, hostile = 8, 12, 40
	tcp, err := net.ListenTCP("tcp", net.TCPAddrFromAddrPort(netip.MustParseAddrPort("127.0.0.1:0")))
	if err != nil {
		t.Fatal(err)
	}
	log := serverlog.New(serverlog.Config{Out: io.Discard})
	defer log.Close()
	server := Start(tcp, Config{Log: log, MaxUnproven: limit, MaxConns: 1000,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/proven" {
				Prove(r.Context())
				Prove(r.Context()) // each request does
			}
		})})
	defer server.Close()
	s := &site{address: tcp.Addr().String()}
	get := func(c *http.Client, path string) {
		t.Helper()
		answer := must.Get(c.Get("http://" + s.address + path))(t)
		answer.Body.Close()
	}
	client := func() *http.Client {
		c := &http.Client{Timeout: testTimeout, Transport: &http.Transport{MaxIdleConns: 1}}
		t.Cleanup(c.CloseIdleConnections)
		return c
	}
	var known []*http.Client
	for range proven {
		known = append(known, client())
		get(known[len(known)-1], "/proven")
	}
	ended := make(chan bool, hostile)
	for i := range hostile {
		c, err := (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 1, byte(i%3))}}).Dial("tcp", s.address)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if i%2 == 0 {
			fmt.Fprint(c, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
		}
		go func() {
			io.Copy(io.Discard, c)
			ended <- true
		}()
	}
	await(t, "strangers evicted", ended, hostile-limit)
	get(client(), "/proven")
	await(t, "one for the client", ended, 1)
	for _, c := range known {
		get(c, "/proven")
	}
	select {
	case <-ended:
		t.Error("more were evicted: a known client had to connect again")
	default:
	}
}
