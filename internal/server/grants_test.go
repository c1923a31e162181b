package server

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/probe"
	"github.com/fullpipe-net/fullpipe/internal/testenv/must"
)

// TestGrant_EndsWithTheKey checks that a granted test ends when its holder's key expires.
func TestGrant_EndsWithTheKey(t *testing.T) {
	for name, until := range map[string]time.Time{"never": {}, "in an hour": time.Now().Add(time.Hour).Round(0)} {
		t.Run(name, func(t *testing.T) {
			holder := probe.Holder{Name: "a", Key: probe.NewKey(), Until: until}
			deadline := make(chan time.Time, 1)
			s := must.Get(New(t.Context(), Config{Address: "127.0.0.1:0", Key: probe.NewKey(),
				Holders: func() []probe.Holder { return []probe.Holder{holder} },
				Iperf3: func(ctx context.Context, conn *net.TCPConn, _ probe.Preface, _ int64, _ bool) {
					conn.Close()
					end, _ := ctx.Deadline()
					deadline <- end
				}}))(t)
			ctx, cancel := context.WithCancel(t.Context())
			served := make(chan error, 1)
			go func() { served <- s.Serve(ctx) }()
			defer func() { cancel(); <-served }()
			client := must.Get(probe.Connect(ctx, s.Addr().String(), holder.Key))(t)
			defer client.Close()
			cookie, address, err := client.Grant(ctx)
			if err != nil {
				t.Fatal(err)
			}
			conn := must.Get(net.Dial("tcp", address))(t)
			defer conn.Close()
			must.Get(conn.Write(cookie[:]))(t)
			if got := <-deadline; !got.Equal(until) {
				t.Errorf("the test may last until %v, want %v", got, until)
			}
		})
	}
}
