//go:build linux

package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"strconv"
	"sync/atomic"
	"time"
)

// webClients are hostile clients of a speed test's server, each on a connection of its own.
var webClients = []func(conn net.Conn){
	slowHeader, halfOpen, hugeFrame, floodOfUpgrades, neverReads, endlessPings, emptyMessages, floodOfRuns,
}

// besiege keeps n hostile web clients at a server until an interrupt, and prints the number of their connections. A
// client that is thrown out reconnects.
func besiege(args []string) error {
	if len(args) != 2 {
		return errors.New("usage: hostile web-clients ADDRESS N")
	}
	n, err := strconv.Atoi(args[1])
	if err != nil {
		return err
	}
	over, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	var made atomic.Int64
	for i := range n {
		go func() {
			for over.Err() == nil {
				conn, err := net.Dial("tcp", args[0])
				if err != nil {
					continue
				}
				made.Add(1)
				leave := time.AfterFunc(20*time.Second, func() { conn.Close() })
				webClients[i%len(webClients)](conn)
				leave.Stop()
				conn.Close()
			}
		}()
	}
	<-over.Done()
	fmt.Println(made.Load())
	return nil
}

// upgraded requests a test and reports whether it began.
func upgraded(conn net.Conn, way string) bool {
	fmt.Fprintf(conn, "GET /ndt/v7/%s HTTP/1.1\r\nHost: %s\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"+
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: DOdm+5/Cm3WwvhfcAlhJoQ==\r\n"+
		"Sec-WebSocket-Protocol: net.measurementlab.ndt.v7\r\n\r\n", way, conn.RemoteAddr())
	answer := make([]byte, 64)
	n, err := io.ReadAtLeast(conn, answer, 12)
	return err == nil && bytes.HasPrefix(answer[:n], []byte("HTTP/1.1 101"))
}

// slowHeader sends a request a byte at a time.
func slowHeader(conn net.Conn) {
	for _, b := range []byte("GET /test HTTP/1.1\r\nHost: x\r\nCookie: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa") {
		if _, err := conn.Write([]byte{b}); err != nil {
			return
		}
		time.Sleep(200 * time.Millisecond)
	}
}

// halfOpen sends nothing.
func halfOpen(conn net.Conn) { io.Copy(io.Discard, conn) }

// frame returns a client's WebSocket frame of any length.
func frame(kind byte, length uint64) []byte {
	return append(binary.BigEndian.AppendUint64([]byte{kind, 0xff}, length), 0, 0, 0, 0)
}

// hugeFrame begins a message of 4 EiB and sends until a write fails.
func hugeFrame(conn net.Conn) {
	if !upgraded(conn, "upload") {
		return
	}
	conn.Write(frame(0x82, 1<<62))
	for block := make([]byte, 64<<10); ; {
		if _, err := conn.Write(block); err != nil {
			return
		}
	}
}

// floodOfUpgrades upgrades and leaves at once.
func floodOfUpgrades(conn net.Conn) { upgraded(conn, "download") }

// neverReads requests a download and reads none of it.
func neverReads(conn net.Conn) {
	if upgraded(conn, "download") {
		time.Sleep(20 * time.Second)
	}
}

// endlessPings sends only pings.
func endlessPings(conn net.Conn) { repeated(conn, []byte{0x89, 0x80, 0, 0, 0, 0}) }

// emptyMessages sends messages without payload.
func emptyMessages(conn net.Conn) { repeated(conn, []byte{0x82, 0x80, 0, 0, 0, 0}) }

func repeated(conn net.Conn, frame []byte) {
	if !upgraded(conn, "upload") {
		return
	}
	go io.Copy(io.Discard, conn)
	for block := bytes.Repeat(frame, 1000); ; {
		if _, err := conn.Write(block); err != nil {
			return
		}
	}
}

// floodOfRuns begins tests without an end.
func floodOfRuns(conn net.Conn) {
	go io.Copy(io.Discard, conn)
	for {
		_, err := fmt.Fprintf(conn, "POST /test/begin HTTP/1.1\r\nHost: %s\r\nContent-Length: 2\r\n\r\n{}", conn.RemoteAddr())
		if err != nil {
			return
		}
	}
}
