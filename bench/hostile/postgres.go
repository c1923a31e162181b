//go:build linux

package main

import (
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"io"
	"net"
	"strings"
)

// pg is one message of PostgreSQL's protocol 3.
func pg(kind byte, body string) []byte {
	return append(binary.BigEndian.AppendUint32([]byte{kind}, uint32(len(body)+4)), body...)
}

// admitted is a server's reply to a client that it admits without a password.
var admitted = bytes.Join([][]byte{pg('R', "\x00\x00\x00\x00"), pg('S', "client_encoding\x00UTF8\x00"),
	pg('S', "standard_conforming_strings\x00on\x00"), pg('K', "\x00\x00\x00\x01\x00\x00\x00\x02"), pg('Z', "I")}, nil)

// oneColumn begins an answer of numbers.
var oneColumn = pg('T', "\x00\x01v\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x17\x00\x04\xff\xff\xff\xff\x00\x00")

// postgresServers are hostile servers of a history. The client cannot recognize them before they reply.
func postgresServers() []farEnd {
	const long = 1000
	forever := func(c net.Conn, one []byte) {
		many := bytes.Repeat(one, 1+1<<16/len(one))
		for {
			if _, err := c.Write(many); err != nil {
				return
			}
		}
	}
	// asked admits a client and replies to its first question.
	asked := func(answer func(net.Conn)) func(net.Conn) {
		return func(c net.Conn) {
			c.Write(admitted)
			c.Read(make([]byte, 4096))
			answer(c)
		}
	}
	var all []farEnd
	for name, says := range map[string]func(net.Conn){
		"postgres-mute":      silent,
		"postgres-refuses":   func(c net.Conn) { c.Write(pg('E', "SFATAL\x00C28000\x00M"+attack+"\x00\x00")) },
		"postgres-huge":      func(c net.Conn) { io.WriteString(c, "R\x3f\xff\xff\xff"); forever(c, []byte{0}) },
		"postgres-passwords": func(c net.Conn) { forever(c, pg('R', "\x00\x00\x00\x03")) },
		"postgres-settings":  func(c net.Conn) { forever(c, pg('S', attack+"\x00"+strings.Repeat("b", long)+"\x00")) },
		"postgres-notices":   func(c net.Conn) { forever(c, pg('N', "SNOTICE\x00M"+attack+"\x00\x00")) },
		"postgres-hash": func(c net.Conn) {
			c.Write(pg('R', "\x00\x00\x00\x0aSCRAM-SHA-256\x00\x00"))
			b := make([]byte, 4096)
			n, _ := c.Read(b)
			_, nonce, _ := bytes.Cut(b[:n], []byte("r="))
			c.Write(pg('R', "\x00\x00\x00\x0br="+string(nonce)+"zz,s=QUFBQUFBQUE=,i=9999999"))
			silent(c)
		},
		"postgres-error": asked(func(c net.Conn) { c.Write(pg('E', "SERROR\x00CXX000\x00M"+attack+"\x00\x00")) }),
		"postgres-newer": asked(func(c net.Conn) {
			c.Write(oneColumn)
			c.Write(pg('D', "\x00\x01\x00\x00\x00\x06999999"))
		}),
		"postgres-rows": asked(func(c net.Conn) {
			c.Write(oneColumn)
			forever(c, pg('D', "\x00\x01\x00\x00\x00\x013"))
		}),
		"postgres-calls":   asked(func(c net.Conn) { forever(c, pg('A', "\x00\x00\x00\x01c\x00"+attack+"\x00")) }),
		"postgres-garbage": asked(func(c net.Conn) { io.CopyN(c, rand.Reader, 1<<16) }),
		"postgres-long": asked(func(c net.Conn) {
			c.Write(oneColumn)
			io.WriteString(c, "D\x3f\xff\xff\xff")
			forever(c, []byte{0})
		}),
	} {
		all = append(all, farEnd{name: name, kind: "postgres", server: func(c *net.TCPConn) {
			var length [4]byte // of who the client is
			if _, err := io.ReadFull(c, length[:]); err != nil {
				return
			}
			io.CopyN(io.Discard, c, int64(min(binary.BigEndian.Uint32(length[:]), 1<<16))-4)
			says(c)
		}})
	}
	return all
}
