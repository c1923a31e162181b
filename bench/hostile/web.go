//go:build linux

package main

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
	"time"
)

// asked reads the head of a request and replies with these bytes.
func asked(then func(c *net.TCPConn)) func(*net.TCPConn) {
	return func(c *net.TCPConn) {
		if _, err := http.ReadRequest(bufio.NewReader(c)); err != nil {
			return
		}
		then(c)
	}
}

func answer(text string) func(*net.TCPConn) {
	return asked(func(c *net.TCPConn) { io.WriteString(c, text) })
}

func webServers() (all []farEnd) {
	const ok = "HTTP/1.1 200 OK\r\n"
	moved := func(to string) func(*net.TCPConn) {
		return answer("HTTP/1.1 302 Found\r\nLocation: " + to + "\r\nContent-Length: 0\r\n\r\n")
	}
	for name, play := range map[string]func(*net.TCPConn){
		"silent":         func(c *net.TCPConn) { silent(c) },
		"closes":         asked(func(*net.TCPConn) {}),
		"resets":         asked(func(c *net.TCPConn) { c.SetLinger(0) }),
		"banner":         func(c *net.TCPConn) { io.WriteString(c, attack) },
		"status-escapes": answer("HTTP/1.1 500 \x1b[2J\u202e<script>x</script>\r\nContent-Length: 0\r\n\r\n"),
		"head-endless": asked(func(c *net.TCPConn) {
			io.WriteString(c, ok)
			flood(c, []byte("X-A: "+strings.Repeat("y", 4096)+"\r\n"))
		}),
		"head-line": asked(func(c *net.TCPConn) {
			io.WriteString(c, ok+"X-A: ")
			flood(c,
				[]byte(strings.Repeat("y", 4096)))
		}),
		"interim-flood": asked(func(c *net.TCPConn) { flood(c, []byte("HTTP/1.1 103 Early Hints\r\nLink: <x>\r\n\r\n")) }),
		"body-none": asked(func(c *net.TCPConn) {
			io.WriteString(c, ok+"Content-Length: 1000000000\r\n\r\nx")
			silent(
				c)
		}),
		"body-cut":        answer(ok + "Content-Length: 1000000000\r\n\r\nx"),
		"body-empty":      answer(ok + "Content-Length: 0\r\n\r\n"),
		"length-negative": answer(ok + "Content-Length: -5\r\n\r\nx"),
		"length-twice":    answer(ok + "Content-Length: 5\r\nContent-Length: 7\r\n\r\nx"),
		"length-huge":     answer(ok + "Content-Length: 99999999999999999999999999\r\n\r\nx"),
		"chunk-huge":      answer(ok + "Transfer-Encoding: chunked\r\n\r\nffffffffffffffffffff\r\nx"),
		"chunk-extension": asked(func(c *net.TCPConn) {
			io.WriteString(c, ok+"Transfer-Encoding: chunked\r\n\r\n1;")
			flood(c, []byte(strings.Repeat("y", 4096)))
		}),
		"moved-to-itself": moved("/again"),
		"moved-elsewhere": moved("gopher://\u202ex/%1b"),
		"moved-to-file":   moved("file:///etc/passwd"),
		"moved-nowhere":   moved(""),
		"moved-escapes":   moved("http://\x1b[2J/"),
		"drips": asked(func(c *net.TCPConn) {
			tick := time.NewTicker(200 * time.Millisecond)
			defer tick.Stop()
			for _, b := range ok + strings.Repeat("X-A: y\r\n", 100) {
				if _, err := c.Write([]byte{byte(b)}); err != nil {
					return
				}
				<-tick.C
			}
		}),
	} {
		all = append(all, farEnd{name: "http-" + name, kind: "http", server: play})
	}
	return sorted(all)
}
