package iperf3

import (
	"bytes"
	"io"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/testenv/must"
)

// Clients that know a key holder's address, but not its cookie, cannot open a stream of its test. A mark does not
// open a test without marks.
func TestServer_MatchesHellosByMark(t *testing.T) {
	address := serve(t, &Server{UDP: true})
	for name, c := range map[string]struct {
		params Params
		others func(Cookie) [][]byte
		client func(Cookie) []byte
	}{
		"marked": {Params{UDP: true, Time: 1, Marked: true},
			func(c Cookie) [][]byte {
				cut := append(helloBytes[:], mark(c)...)
				return [][]byte{helloBytes[:], oldHellos[0][:], append(helloBytes[:], mark(NewCookie())...), cut[:len(cut)-1],
					append(slices.Clone(cut), 0), mark(c), {}}
			},
			func(c Cookie) []byte { return append(helloBytes[:], mark(c)...) }},
		"unmarked": {Params{UDP: true, Time: 1},
			func(c Cookie) [][]byte { return [][]byte{append(helloBytes[:], mark(c)...)} },
			func(Cookie) []byte { return helloBytes[:] }},
	} {
		control := must.Get(net.Dial("tcp", address))(t)
		defer control.Close()
		control.SetDeadline(time.Now().Add(20 * time.Second))
		cookie := NewCookie()
		control.Write(cookie[:])
		expectState(t, control, ParamExchange)
		WriteFrame(control, c.params)
		expectState(t, control, CreateStreams)
		other := must.Get(net.Dial("udp", address))(t)
		defer other.Close()
		for _, greeting := range c.others(cookie) {
			other.Write(greeting)
		}
		client := must.Get(net.Dial("udp", address))(t)
		defer client.Close()
		client.SetDeadline(time.Now().Add(20 * time.Second))
		client.Write(c.client(cookie))
		answer := make([]byte, 100)
		if n, err := client.Read(answer); err != nil || !bytes.Equal(answer[:n], helloReplyBytes[:]) {
			t.Fatalf("%s: the client is answered %q, %v", name, answer[:n], err)
		}
		expectState(t, control, TestStart)
		other.SetReadDeadline(time.Now().Add(time.Millisecond))
		if n, err := other.Read(answer); err == nil {
			t.Errorf("%s: another is answered %q", name, answer[:n])
		}
	}
}

func TestServer_IgnoresDuplicateHellos(t *testing.T) {
	server := &Server{UDP: true}
	address := serve(t, server)
	control := must.Get(net.Dial("tcp", address))(t)
	defer control.Close()
	control.SetDeadline(time.Now().Add(20 * time.Second))
	cookie := NewCookie()
	control.Write(cookie[:])
	expectState(t, control, ParamExchange)
	WriteFrame(control, Params{UDP: true, Time: 1, Streams: 3})
	expectState(t, control, CreateStreams)
	for range 3 {
		client := must.Get(net.Dial("udp", address))(t)
		defer client.Close()
		client.SetDeadline(time.Now().Add(20 * time.Second))
		for range 2 {
			server.handleHello(client.LocalAddr().(*net.UDPAddr).AddrPort(), helloBytes[:])
		}
		answer := make([]byte, 100)
		if n, err := client.Read(answer); err != nil || !bytes.Equal(answer[:n], helloReplyBytes[:]) {
			t.Fatalf("a client is answered %q, %v", answer[:n], err)
		}
	}
	expectState(t, control, TestStart)
}

func expectState(t *testing.T, from io.Reader, want State) {
	t.Helper()
	if s, err := ReadState(from); s != want || err != nil {
		t.Fatalf("%v, %v where %v was to come", s, err, want)
	}
}
