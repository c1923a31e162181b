//go:build linux

package main

import (
	"bytes"
	"compress/flate"
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"

	"github.com/fullpipe-net/fullpipe/internal/probe"
)

// clientTLS does the native protocol's handshake without the key.
func clientTLS(c net.Conn) (*tls.Conn, error) {
	c.Write(probe.Marker[:])
	if _, err := io.ReadFull(c, make([]byte, 1)); err != nil {
		return nil, err
	}
	t := tls.Client(c, &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS13, ServerName: "nobody"})
	return t, t.Handshake()
}

// greeted waits for more input or the end of the connection, closes, and reports what it received.
func greeted(t *tls.Conn) <-chan struct{} {
	heard := make(chan struct{})
	go func() {
		defer close(heard)
		if n, _ := t.Read(make([]byte, 100)); n > 0 {
			fmt.Println("ADMITTED")
		}
	}()
	return heard
}

// answered reads a client's marker and replies as a fullpipe server does.
func answered(c *net.TCPConn) bool {
	_, err := io.ReadFull(c, make([]byte, probe.PrefaceSize))
	if err != nil {
		return false
	}
	_, err = c.Write([]byte{probe.AnswerFullpipe})
	return err == nil
}

// secured does a server's half of the handshake.
func secured(c *net.TCPConn, key probe.Key) (*tls.Conn, error) {
	if !answered(c) {
		return nil, errors.New("no client")
	}
	cert, err := probe.NewCertificate()
	if err != nil {
		return nil, err
	}
	return probe.SecureServer(context.Background(), c, cert, key)
}

const hello = `{"version":1,"software":"fullpipe","kernel":"Linux 6.1","congestion":["cubic"],` +
	`"limits":{"time_ns":3600000000000,"bytes":1099511627776,"streams":512,"buffer":1073741824,"options":true},"echo":true}`

// message writes one frame: a length, a kind, and the unchanged body.
func message(c io.Writer, kind byte, body []byte) error {
	_, err := c.Write(append(append(binary.BigEndian.AppendUint32(nil, uint32(1+len(body))), kind), body...))
	return err
}

func packed(body []byte) []byte {
	var out bytes.Buffer
	z, _ := flate.NewWriter(&out, flate.BestSpeed)
	z.Write(body)
	z.Close()
	return out.Bytes()
}

// after proves the key, sends the greeting and continues with then.
func after(greeting string, then func(c *tls.Conn)) func(*net.TCPConn) {
	return func(tcp *net.TCPConn) {
		key, err := probe.ParseKey(os.Getenv("FULLPIPE_KEY"))
		if err != nil {
			fmt.Fprintln(os.Stderr, "hostile:", err)
			return
		}
		c, err := secured(tcp, key)
		if err != nil {
			return
		}
		if message(c, 'H', []byte(greeting)) == nil {
			then(c)
		}
		silent(c)
	}
}

// queue lets its client wait for a turn, at the nth place that it names.
func queue(place func(n int) int) func(*net.TCPConn) {
	return after(hello, func(c *tls.Conn) {
		for n, err := 0, error(nil); err == nil; n++ {
			err = message(c, 'H', fmt.Appendf(nil, `{"version":1,"busy":true,"place":%d}`, place(n)))
		}
	})
}

// offered reads an offer.
func offered(c net.Conn) bool {
	var length [4]byte
	if _, err := io.ReadFull(c, length[:]); err != nil {
		return false
	}
	_, err := io.CopyN(io.Discard, c, int64(binary.BigEndian.Uint32(length[:])))
	return err == nil
}

// accepting agrees to an offer whose one stream comes to a port that reads all, and then
// goes wrong.
func accepting(then func(c *tls.Conn)) func(*net.TCPConn) {
	return after(hello, func(c *tls.Conn) {
		if !offered(c) {
			return
		}
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return
		}
		defer l.Close()
		go func() {
			for {
				stream, err := l.Accept()
				if err != nil {
					return
				}
				go silent(stream)
			}
		}()
		token := probe.NewToken()
		message(c, 'A', fmt.Appendf(nil, `{"tokens":[%q],"port":%d}`, token[:], l.Addr().(*net.TCPAddr).Port))
		then(c)
		silent(c)
	})
}

// refusing replies to an offer with this body.
func refusing(body string) func(*net.TCPConn) {
	return after(hello, func(c *tls.Conn) {
		if offered(c) {
			message(c, 'A', []byte(body))
		}
	})
}

func result(body string) func(*net.TCPConn) { return large(func() string { return body }) }

// large returns a result that is made on request.
func large(body func() string) func(*net.TCPConn) {
	return accepting(func(c *tls.Conn) { message(c, 'R', packed([]byte(body()))) })
}

func nativeServers() (all []farEnd) {
	quoted := jsonText(attack)
	flood := func(body string) func(*tls.Conn) {
		return func(c *tls.Conn) {
			for message(c, 'P', []byte(body)) == nil {
			}
		}
	}
	for name, play := range map[string]func(*net.TCPConn){
		"silent": func(c *net.TCPConn) { silent(c) },
		"closes": func(c *net.TCPConn) {},
		"resets": func(c *net.TCPConn) { c.SetLinger(0) },
		"garbage": func(c *net.TCPConn) {
			answered(c)
			c.Write(bytes.Repeat([]byte("\x1b[2J\nFORGED"), 1000))
			silent(
				c)
		},
		"banner":        func(c *net.TCPConn) { io.WriteString(c, "220 "+attack+"\r\n"); silent(c) },
		"silent-in-tls": func(c *net.TCPConn) { answered(c); silent(c) },
		"without-key":   func(c *net.TCPConn) { secured(c, probe.NewKey()) },
		"frame-of-4-GB": after(hello, func(c *tls.Conn) { c.Write([]byte{0xff, 0xff, 0xff, 0xff, 'A'}) }),
		"empty-frame":   after(hello, func(c *tls.Conn) { c.Write(make([]byte, 4)) }),
		"hello-no-json": after("{", func(*tls.Conn) {}),
		"hello-escapes": after(strings.Replace(hello, `"fullpipe"`, quoted, 1), func(*tls.Conn) {}),
		"hello-future":  after(`{"version":7,"versions":{"least":7,"most":9},"software":`+quoted+`}`, func(*tls.Conn) {}),
		"hello-busy":    after(`{"version":1,"busy":true}`, func(*tls.Conn) {}),
		"hello-queue":   queue(func(int) int { return 1 }),
		"hello-queues":  queue(func(n int) int { return 1 + n%2 }),
		"hello-limits": after(`{"version":1,"limits":{"time_ns":-1,"bytes":-1,"streams":-1,"buffer":-1}}`,
			func(*tls.Conn) {}),
		"offer-unheard":  after(hello, func(*tls.Conn) {}),
		"offer-leaves":   after(hello, func(c *tls.Conn) { offered(c); c.Close() }),
		"refuses":        refusing(`{"field":` + quoted + `,"error":` + quoted + `}`),
		"no-tokens":      refusing(`{}`),
		"tokens-many":    refusing(`{"tokens":[` + strings.Repeat(`"x",`, 10000) + `"x"]}`),
		"port-absurd":    refusing(`{"tokens":["` + strings.Repeat("x", 37) + `"],"port":-1}`),
		"warnings":       refusing(`{"tokens":[],"warnings":[` + strings.Repeat(quoted+",", 500) + quoted + `]}`),
		"progress-flood": accepting(flood(`{"interval":{"end_ns":1,"bytes":1}}`)),
		"progress-empty": accepting(flood(`{}`)),
		"progress-lies": accepting(func(c *tls.Conn) {
			message(c, 'P',
				[]byte(`{"interval":{"start_ns":9,"end_ns":-9,"bytes":1e18}}`))
		}),
		"result-bomb":    large(func() string { return `{"error":"` + strings.Repeat("x", 64<<20) + `"}` }),
		"result-streams": large(func() string { return `{"end":{"streams":[` + strings.Repeat("{},", 500_000) + `{}]}}` }),
		"result-samples": large(func() string {
			return `{"end":{"streams":[{"samples":[` + strings.Repeat("{},", 999_999) + `{}]}]}}`
		}),
		"result-deep":   large(func() string { return strings.Repeat(`{"end":`, 1_000_000) }),
		"result-types":  result(`{"end":{"streams":{"0":"x"},"warnings":7}}`),
		"result-lies":   result(`{"end":{"streams":[{"bytes":-1,"last_ns":9e18,"samples":[{"at_ns":-1,"cwnd":1e30}]}]}}`),
		"result-error":  result(`{"error":` + quoted + `,"warnings":[` + quoted + `]}`),
		"result-none":   accepting(func(*tls.Conn) {}),
		"result-twice":  accepting(func(c *tls.Conn) { r := packed([]byte("{}")); message(c, 'R', r); message(c, 'R', r) }),
		"leaves-midway": accepting(func(c *tls.Conn) { c.Close() }),
	} {
		all = append(all, farEnd{name: "native-" + name, kind: "native", server: play})
	}
	return sorted(all)
}
