package server

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/probe"
)

// TestGrant_EndsWithTheKey checks that a granted test ends when its holder's key expires.
func TestGrant_EndsWithTheKey(t *testing.T) {
	for name, until := range map[string]time.Time{"never": {}, "in an hour": time.Now().Add(time.Hour).Round(0)} {
		t.Run(name, func(t *testing.T) {
			holder := probe.Holder{Name: "a", Key: probe.NewKey(), Until: until}
			deadline := make(chan time.Time, 1)
			s, err := New(t.Context(), Config{Address: "127.0.0.1:0", Key: probe.NewKey(),
				Holders: func() []probe.Holder { return []probe.Holder{holder} },
				Iperf3: func(ctx context.Context, conn *net.TCPConn, _ probe.Preface, _ int64, _ bool) {
					conn.Close()
					end, _ := ctx.Deadline()
					deadline <- end
				}})
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			served := make(chan error, 1)
			go func() { served <- s.Serve(ctx) }()
			defer func() { cancel(); <-served }()
			client, err := probe.Connect(ctx, s.Addr().String(), holder.Key)
			if err != nil {
				t.Fatal(err)
			}
			defer client.Close()
			cookie, address, err := client.Grant(ctx)
			if err != nil {
				t.Fatal(err)
			}
			conn, err := net.Dial("tcp", address)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			if _, err := conn.Write(cookie[:]); err != nil {
				t.Fatal(err)
			}
			if got := <-deadline; !got.Equal(until) {
				t.Errorf("the test may last until %v, want %v", got, until)
			}
		})
	}
}
