//go:build linux

package main

import (
	"bufio"
	"crypto/sha1" // RFC 6455 section 4.2.2
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/ndt7"
)

// WebSocket's opcodes (RFC 6455 section 11.8), and the bit that ends a message.
const (
	wsMore, wsText, wsBinary, wsClose, wsPing = 0, 1, 2, 8, 9
	wsEnd                                     = 0x80
)

// wsFrame is a frame of a server. Its payload may be shorter than the length that it claims.
func wsFrame(first byte, claimed uint64, payload []byte) []byte {
	b := []byte{first}
	switch {
	case claimed < 126:
		b = append(b, byte(claimed))
	case claimed < 1<<16:
		b = binary.BigEndian.AppendUint16(append(b, 126), uint16(claimed))
	default:
		b = binary.BigEndian.AppendUint64(append(b, 127), claimed)
	}
	return append(b, payload...)
}

func whole(opcode byte, payload string) []byte {
	return wsFrame(wsEnd|opcode, uint64(len(payload)), []byte(payload))
}

// greets reads a client's request. It rejects a TLS hello in plain HTTP, as web servers do, and the client retries
// without TLS.
func greets(c *net.TCPConn) *http.Request {
	in := bufio.NewReader(c)
	if first, err := in.Peek(1); err != nil || first[0] == 0x16 {
		io.WriteString(c, "HTTP/1.0 400 Bad Request\r\n\r\n")
		return nil
	}
	r, err := http.ReadRequest(in)
	if err != nil {
		return nil
	}
	return r
}

// accepted returns the response that turns a connection into a WebSocket.
func accepted(r *http.Request, more string) string {
	sum := sha1.Sum([]byte(r.Header.Get("Sec-WebSocket-Key") + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"))
	return "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: " +
		base64.StdEncoding.EncodeToString(sum[:]) + "\r\n" + more + "\r\n"
}

const speaks = "Sec-WebSocket-Protocol: " + ndt7.Protocol + "\r\n"

// ndt7Servers play M-Lab's protocol wrongly.
func ndt7Servers() (all []farEnd) {
	load := wsFrame(wsEnd|wsBinary, 1<<13, make([]byte, 1<<13))
	add := func(name string, play func(*net.TCPConn, *http.Request)) {
		all = append(all, farEnd{name: "ndt7-" + name, kind: "ndt7", server: func(c *net.TCPConn) {
			if r := greets(c); r != nil {
				play(c, r)
			}
		}})
	}
	// tests are servers that accept the test. Each reads the client's data concurrently.
	test := func(name string, play func(*net.TCPConn)) {
		add(name, func(c *net.TCPConn, r *http.Request) {
			io.WriteString(c, accepted(r, speaks))
			go silent(c)
			play(c)
		})
	}
	repeats := func(name string, first, each []byte) {
		test(name, func(c *net.TCPConn) { c.Write(first); flood(c, each) })
	}
	hangs := func(c *net.TCPConn) { <-make(chan struct{}) }
	says := func(name string, frames ...[]byte) {
		test(name, func(c *net.TCPConn) {
			for _, one := range frames {
				c.Write(one)
			}
			hangs(c)
		})
	}
	addResponse := func(name, text string) {
		add(name, func(c *net.TCPConn, _ *http.Request) { io.WriteString(c, text) })
	}
	for name, to := range map[string]string{"itself": "/ndt/v7/download", "escapes": "http://\x1b[2J/",
		"inside": "http://169.254.169.254/ndt/v7/download", "port": "http://127.0.0.1:1/ndt/v7/download"} {
		addResponse("moved-to-"+name, "HTTP/1.1 302 Found\r\nLocation: "+to+"\r\nContent-Length: 0\r\n\r\n")
	}
	addResponse("status-escapes", "HTTP/1.1 500 \x1b[2J\u202e\r\nContent-Length: 0\r\n\r\n")
	addResponse("banner", attack)
	addResponse("closes", "")
	add("key-wrong", func(c *net.TCPConn, r *http.Request) {
		r.Header.Del("Sec-WebSocket-Key")
		io.WriteString(c, accepted(r, speaks))
	})
	add("protocol-none", func(c *net.TCPConn, r *http.Request) { io.WriteString(c, accepted(r, "")); silent(c) })
	add("protocol-escapes", func(c *net.TCPConn, r *http.Request) {
		io.WriteString(c, accepted(r, "Sec-WebSocket-Protocol: \x1b[2J\u202e\r\n"))
	})
	add("extension-unasked", func(c *net.TCPConn, r *http.Request) {
		io.WriteString(c, accepted(r, speaks+"Sec-WebSocket-Extensions: permessage-deflate\r\n"))
		silent(c)
	})
	add("head-endless", func(c *net.TCPConn, _ *http.Request) {
		io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\n")
		flood(c, []byte("X-A: "+strings.Repeat("y", 4096)+"\r\n"))
	})
	add("never-reads", func(c *net.TCPConn, r *http.Request) { io.WriteString(c, accepted(r, speaks)); hangs(c) })
	test("silent", hangs)
	test("resets", func(c *net.TCPConn) { c.Write(load); c.SetLinger(0) })
	says("load-and-silence", load)
	says("frame-of-4-EB", wsFrame(wsEnd|wsBinary, 1<<62, make([]byte, 1<<16)))
	says("frame-of-sign", wsFrame(wsEnd|wsBinary, 1<<63, []byte("x")))
	repeats("frame-endless", wsFrame(wsEnd|wsBinary, 1<<60, nil), make([]byte, 1<<16))
	repeats("message-endless", wsFrame(wsBinary, 4, []byte("abcd")), wsFrame(wsMore, 1<<13, make([]byte, 1<<13)))
	repeats("pieces-empty", wsFrame(wsBinary, 0, nil), wsFrame(wsMore, 0, nil))
	repeats("messages-empty", nil, whole(wsBinary, ""))
	repeats("load-endless", nil, load)
	repeats("text-endless", wsFrame(wsEnd|wsText, 1<<40, nil), []byte(strings.Repeat("[", 1<<16)))
	repeats("texts-endless", load, whole(wsText, `{"TCPInfo":{"ElapsedTime":1}}`))
	repeats("pings-endless", load, whole(wsPing, strings.Repeat("p", 125)))
	says("ping-of-64-KiB", wsFrame(wsEnd|wsPing, 1<<16, make([]byte, 1<<16)))
	says("masked", []byte{wsEnd | wsBinary, 0x80 | 4, 1, 2, 3, 4, 5, 6, 7, 8})
	says("opcode-unknown", whole(5, "x"))
	says("reserved-bits", wsFrame(wsEnd|0x70|wsBinary, 1, []byte("x")))
	says("deep", load, whole(wsText, strings.Repeat(`{"TCPInfo":`, 1300)))
	says("types", load, whole(wsText, `{"TCPInfo":[],"AppInfo":"x","Origin":{}}`),
		whole(wsText, `{"TCPInfo":{"ElapsedTime":"5","RTT":1e999}}`), load)
	says("close-escapes", load, whole(wsClose, "\x03\xe8"+attack[:40]))
	says("close-of-one-byte", whole(wsClose, "\x03"))
	escapes := jsonText("\x1b[2J\u202e\nFORGED")
	info := `{"Origin":E,"Test":E,"ConnectionInfo":{"Client":E,"Server":E,"UUID":E}}`
	says("escapes", load, whole(wsText, strings.ReplaceAll(info, "E", escapes)), load)
	test("counts-absurd", func(c *net.TCPConn) { // in both directions; its clock goes as it likes
		const most = "9223372036854775807"
		for _, v := range []string{most, "-" + most, "0", "1e18", "4294967295"} {
			for _, at := range []string{"200000", "1", most, "-5"} {
				c.Write(load)
				c.Write(whole(wsText, strings.NewReplacer("V", v, "AT", at).Replace(`{"AppInfo":{"ElapsedTime":AT,"NumBytes":V},
"TCPInfo":{"ElapsedTime":AT,"BytesAcked":V,"BytesSent":V,"BytesReceived":V,"BytesRetrans":V,"BusyTime":V,"RWndLimited":V,
"SndBufLimited":V,"MinRTT":V,"RTT":V,"RTTVar":V,"SndMSS":V,"SndCwnd":V,"SndSsThresh":V,"Unacked":V,"NotsentBytes":V,
"DeliveryRate":V,"TotalRetrans":V,"SndWnd":V}}`)))
			}
		}
		flood(c, load)
	})
	test("intervals-flood", func(c *net.TCPConn) {
		for n := 0; ; n++ {
			text := fmt.Sprintf(`{"AppInfo":{"ElapsedTime":%d,"NumBytes":%[1]d}}`, n)
			if _, err := c.Write(whole(wsText, text)); err != nil {
				return
			}
		}
	})
	test("drips", func(c *net.TCPConn) {
		tick := time.NewTicker(50 * time.Millisecond)
		defer tick.Stop()
		for range tick.C {
			if _, err := c.Write(whole(wsBinary, "x")); err != nil {
				return
			}
		}
	})
	return append(all, farEnd{name: "ndt7-mute", kind: "ndt7", server: func(c *net.TCPConn) { silent(c) }})
}
