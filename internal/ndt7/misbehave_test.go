package ndt7

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/fullpipe-net/fullpipe/internal/testenv/must"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

func TestServer_SurvivesMisbehavingClients(t *testing.T) {
	var s *serving
	dial := func(path string) *websocket.Conn {
		c, _, err := websocket.Dial(t.Context(), s.URL+path, &websocket.DialOptions{Subprotocols: []string{Protocol}})
		if err != nil {
			t.Fatal(err)
		}
		c.SetReadLimit(maxMessage)
		return c
	}
	toTheEnd := func(c *websocket.Conn) {
		for {
			if _, _, err := c.Read(t.Context()); err != nil {
				return
			}
		}
	}
	// flood sends its frames repeatedly until the server ends the connection.
	flood := func(path, first, frame string) func() {
		return func() {
			c := raw(t, s.address, path)
			c.Write([]byte(first))
			go io.Copy(io.Discard, c)
			for block, sent := []byte(strings.Repeat(frame, 1000)), 0; ; sent += len(block) {
				if _, err := c.Write(block); err != nil {
					break
				}
				if sent > 64<<20 {
					t.Errorf("%s, %q: %d bytes were taken", path, frame, sent)
					c.Close()
					break
				}
			}
		}
	}
	const key = "\x00\x00\x00\x00"
	for name, act := range map[string]func(){
		"endless pings":             flood(UploadPath, "", "\x89\x80"+key),
		"endless pings, download":   flood(DownloadPath, "", "\x89\x80"+key),
		"messages without load":     flood(UploadPath, "", "\x82\x80"+key),
		"a message without its end": flood(UploadPath, "\x02\x80"+key, "\x00\x80"+key),
		"a load in a download": func() {
			c := dial(DownloadPath)
			c.Write(t.Context(), websocket.MessageBinary, make([]byte, 1024))
			toTheEnd(c)
		},
		"a huge frame": func() {
			c := dial(UploadPath)
			w, _ := c.Writer(t.Context(), websocket.MessageBinary)
			for range maxMessage>>20 + 1 {
				if _, err := w.Write(payload()); err != nil {
					break
				}
			}
			toTheEnd(c)
		},
		"endless texts": func() {
			c := dial(UploadPath)
			for range 10 * maxTexts {
				if c.Write(t.Context(), websocket.MessageText, []byte(`{}`)) != nil {
					break
				}
			}
			toTheEnd(c)
		},
		"a large text": func() {
			c := dial(UploadPath)
			c.Write(t.Context(), websocket.MessageText, make([]byte, 2*maxText))
			toTheEnd(c)
		},
		"gone at once": func() { dial(DownloadPath).CloseNow() },
	} {
		s = serve(t, false, Config{})
		act()
		select {
		case one := <-s.done:
			if one.Err == nil {
				t.Errorf("%s: the test ended as if nothing were", name)
			}
		case <-time.After(20 * time.Second):
			t.Fatalf("%s: the test goes on", name)
		}
		barred := s.request(t, DownloadPath+"?early_exit=1", nil).StatusCode == http.StatusServiceUnavailable
		if want := name != "gone at once"; barred != want {
			t.Errorf("%s: its address is barred: %v", name, barred)
		}
	}
	s = serve(t, false, Config{})
	spec := transfer.Spec{Direction: transfer.Down, Time: time.Second}
	if r, err := transfer.Run(t.Context(), s.peer(t), spec, nil); err != nil || !r.Complete {
		t.Errorf("afterwards: %v", err)
	}
}

// raw begins a test on a connection where the caller writes the frames.
func raw(t *testing.T, address, path string) net.Conn {
	t.Helper()
	c := must.Get(net.Dial("tcp", address))(t)
	t.Cleanup(func() { c.Close() })
	fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: %s\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"+
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: DOdm+5/Cm3WwvhfcAlhJoQ==\r\nSec-WebSocket-Protocol: %s\r\n\r\n",
		path, address, Protocol)
	var head []byte
	for one := make([]byte, 1); !strings.HasSuffix(string(head), "\r\n\r\n"); head = append(head, one...) {
		if _, err := c.Read(one); err != nil {
			t.Fatalf("%v after %q", err, head)
		}
	}
	if !strings.HasPrefix(string(head), "HTTP/1.1 101 ") {
		t.Fatalf("%s", head)
	}
	return c
}

// TestServer_EndsTestStalledInsideMessage stops inside a frame when the server closes. The test ends and frees its
// slot.
func TestServer_EndsTestStalledInsideMessage(t *testing.T) {
	t.Parallel()
	s := serve(t, false, Config{})
	c := raw(t, s.address, UploadPath+"?"+LengthKey+"=500")
	answer := bufio.NewReader(c)
	c.Write([]byte{0x82, 0xff, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0}) // a masked binary frame of 16 MiB
	const goodbye = 0x88
	for kind := byte(0); kind != goodbye; {
		must.Get(c.Write(make([]byte, 128<<10)))(t)
		var head [2]byte
		must.Get(io.ReadFull(answer, head[:]))(t)
		length := int64(head[1])
		kind = head[0]
		if length == 126 {
			must.Get(io.ReadFull(answer, head[:]))(t)
			length = int64(head[0])<<8 | int64(head[1])
		}
		must.Get(io.CopyN(io.Discard, answer, length))(t)
	}
	select {
	case <-s.done:
	case <-time.After(20 * time.Second):
		t.Fatal("the server waits for the rest")
	}
}

// The server receives the upload and also sends payload.
func TestPeer_RejectsPayloadInUpload(t *testing.T) {
	t.Parallel()
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, err := websocket.Accept(w, r, &websocket.AcceptOptions{Subprotocols: []string{Protocol}})
		if err != nil {
			return
		}
		defer c.CloseNow()
		c.Write(r.Context(), websocket.MessageBinary, payload()[:1])
		for c.SetReadLimit(maxMessage); ; {
			if _, _, err := c.Read(r.Context()); err != nil {
				return
			}
		}
	}))
	defer site.Close()
	p := NewPeer(site.Listener.Addr().String())
	defer p.Close()
	_, err := transfer.Run(t.Context(), p, transfer.Spec{Direction: transfer.Up, Time: 10 * time.Second}, nil)
	if err == nil || !strings.Contains(err.Error(), "load in an upload") {
		t.Errorf("%v", err)
	}
}

func TestPeer_SurvivesMisbehavingServers(t *testing.T) {
	for name, act := range map[string]func(ctx context.Context, c *websocket.Conn){
		"nothing": func(context.Context, *websocket.Conn) {},
		"a load in an upload": func(ctx context.Context, c *websocket.Conn) {
			c.Write(ctx, websocket.MessageBinary, payload())
		},
		"a lie": func(ctx context.Context, c *websocket.Conn) {
			c.Write(ctx, websocket.MessageBinary, payload())
			lie := int64(math.MaxInt64)
			text, _ := json.Marshal(Measurement{TCPInfo: &TCPInfo{ElapsedTime: 5, RTT: &lie, BytesAcked: &lie, SndCwnd: &lie,
				SndMSS: &lie, MinRTT: &lie}})
			c.Write(ctx, websocket.MessageText, text)
			c.Write(ctx, websocket.MessageBinary, payload())
		},
	} {
		site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			c, err := websocket.Accept(w, r, &websocket.AcceptOptions{Subprotocols: []string{Protocol}})
			if err != nil {
				return
			}
			act(r.Context(), c)
			c.CloseNow()
		}))
		p := NewPeer(site.Listener.Addr().String())
		for _, d := range []transfer.Direction{transfer.Up, transfer.Down} {
			r, err := transfer.Run(t.Context(), p, transfer.Spec{Direction: d, Time: 10 * time.Second}, nil)
			if err == nil && r.Complete && r.Far != nil {
				t.Errorf("%s %s: believed: %+v", name, d, r.Far)
			}
		}
		p.Close()
		site.Close()
	}
}
