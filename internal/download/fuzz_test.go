package download

import (
	"context"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/testenv/must"
)

// FuzzServer checks that Open returns for any response of a web server.
func FuzzServer(f *testing.F) {
	for _, said := range []string{"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\nAccept-Ranges: bytes\r\n\r\n",
		"HTTP/1.1 302 Found\r\nLocation: /again\r\nContent-Length: 0\r\n\r\n", "HTTP/1.1 103 Early\r\n\r\n",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\nx",
		"HTTP/1.1 206 Partial\r\nContent-Range: bytes 0-0/99999999999999999999\r\nContent-Length: 1\r\n\r\nx"} {
		f.Add([]byte(said))
	}
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(f)
	f.Cleanup(func() { l.Close() })
	var mu sync.Mutex // guards says
	var says []byte
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				mu.Lock()
				said := says
				mu.Unlock()
				c.SetDeadline(time.Now().Add(5 * time.Second))
				c.Read(make([]byte, 4096)) // the request
				c.Write(said)
			}()
		}
	}()
	f.Fuzz(func(t *testing.T, said []byte) {
		mu.Lock()
		says = said
		mu.Unlock()
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		p, err := Open(ctx, "http://"+l.Addr().String()+"/x", Config{HTTP1: true, MaxRequests: 8})
		if ctx.Err() != nil {
			t.Fatalf("Open timed out: %v", err)
		}
		if err != nil {
			return
		}
		defer p.Close()
		if p.object.size < -1 || p.object.url == nil {
			t.Errorf("%+v", p.object)
		}
		p.States()
	})
}
