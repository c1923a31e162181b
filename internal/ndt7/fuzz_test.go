package ndt7

import (
	"bufio"
	"context"
	"crypto/sha1"
	"encoding/base64"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/httpserver"
	"github.com/fullpipe-net/fullpipe/internal/testenv/must"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// taken is the longest time of a test after its far end has left, much less than a test's duration.
const taken = 3 * time.Second

// frames are what a far end may send: text, payload, ping, close, and invalid bytes.
var frames = []string{
	"\x81\x80\x00\x00\x00\x00",
	"\x81\x82\x00\x00\x00\x00{}", "\x82\x83\x01\x02\x03\x04abc", "\x89\x80\x00\x00\x00\x00",
	"\x88\x82\x00\x00\x00\x00\x03\xe8", "\x81\x02{}", "\x82\x03abc", "\x82\x7f\x7f\xff\xff\xff\xff\xff\xff\xff",
	"\x88\x00", "\x01\x01{", "\xff\xff"}

// FuzzClient checks that a test ends soon after its client has left.
func FuzzClient(f *testing.F) {
	for _, text := range frames {
		f.Add(UploadPath, "fullpipe_ms=600", text)
		f.Add(DownloadPath, "early_exit=1", text)
	}
	f.Add(DownloadPath, "a=%zz;b&fullpipe_ms=-1", "")
	l, err := net.ListenTCP("tcp", net.TCPAddrFromAddrPort(netip.MustParseAddrPort("127.0.0.1:0")))
	if err != nil {
		f.Fatal(err)
	}
	ended := make(chan struct{}, 64)
	server := NewServer(Config{Bounds: Limits{Tests: 1000, BytesPerDay: math.MaxInt64}})
	site := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		server.ServeHTTP(w, r)
		select {
		case ended <- struct{}{}:
		default:
		}
	}))
	site.Listener.Close()
	site.Listener, site.Config.ConnState = httpserver.Listen(l, Accepted), httpserver.TrackState
	site.Config.ConnContext = WithConn
	site.Start()
	f.Cleanup(site.Close)
	var from uint32 // a misbehaving client is barred for a while, so each has its own address
	f.Fuzz(func(t *testing.T, path, query, said string) {
		from++
		near := &net.TCPAddr{IP: net.IPv4(127, byte(1+from>>16), byte(from>>8), byte(from))}
		conn := must.Get(net.DialTCP("tcp", near, l.Addr().(*net.TCPAddr)))(t)
		defer conn.Close()
		conn.SetLinger(0) // otherwise ports run out
		conn.SetDeadline(time.Now().Add(taken))
		fmt.Fprintf(conn, "GET %s?%s HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"+
			"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: DOdm+5/Cm3WwvhfcAlhJoQ==\r\n"+
			"Sec-WebSocket-Protocol: %s\r\n\r\n%s", path, query, Protocol, said)
		in := bufio.NewReader(conn)
		answer, err := http.ReadResponse(in, nil)
		if err != nil {
			return // not a request for this handler
		}
		if answer.StatusCode == http.StatusSwitchingProtocols {
			in.Discard(1)
		}
		conn.Close()
		if answer.Close {
			return // net/http's own response
		}
		select {
		case <-ended:
		case <-time.After(taken):
			t.Errorf("%d, and it goes on", answer.StatusCode)
		}
	})
}

// FuzzServer checks that the client's test ends soon after its server has left, and that its counts are possible.
func FuzzServer(f *testing.F) {
	for _, text := range frames {
		f.Add(text, true)
		f.Add(text, false)
	}
	text := `{"TCPInfo":{"BytesAcked":1,"MinRTT":4294967295,"RTT":3,"ElapsedTime":5},` +
		`"AppInfo":{"NumBytes":5,"ElapsedTime":1}}`
	f.Add(fmt.Sprintf("\x81\x7e\x00%c%s\x82\x03abc\x88\x00", len(text), text), false)
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(f)
	var mu sync.Mutex // guards says
	var says string
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			serving.Go(func() {
				defer c.Close()
				c.SetDeadline(time.Now().Add(taken))
				r, err := http.ReadRequest(bufio.NewReader(c))
				if err != nil {
					return
				}
				mu.Lock()
				said := says
				mu.Unlock()
				sum := sha1.Sum([]byte(r.Header.Get("Sec-WebSocket-Key") + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"))
				fmt.Fprintf(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"+
					"Sec-WebSocket-Protocol: %s\r\nSec-WebSocket-Accept: %s\r\n\r\n%s", Protocol,
					base64.StdEncoding.EncodeToString(sum[:]), said)
				c.(*net.TCPConn).CloseWrite()
				io.CopyN(io.Discard, c, 1<<20)
			})
		}
	})
	f.Cleanup(func() { l.Close(); serving.Wait() })
	f.Fuzz(func(t *testing.T, said string, up bool) {
		mu.Lock()
		says = said
		mu.Unlock()
		p := NewPeer(l.Addr().String())
		defer p.Close()
		p.plain.Store(true)
		spec := transfer.Spec{Direction: transfer.Down, Time: time.Second}
		if up {
			spec.Direction = transfer.Up
		}
		ctx, cancel := context.WithTimeout(t.Context(), 3*taken)
		defer cancel()
		r, err := transfer.Run(ctx, p, spec, nil)
		if ctx.Err() != nil {
			t.Fatalf("it goes on: %v", err)
		}
		if r != nil && r.Far != nil {
			if err := r.Far.Validate(spec, time.Minute); err != nil {
				t.Error(err)
			}
		}
	})
}
