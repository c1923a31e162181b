//go:build linux

package main

import (
	"crypto/rand"
	"encoding/binary"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/iperf3"
	"github.com/fullpipe-net/fullpipe/internal/probe"
)

// strangers are ways of a client to be slow, silent, half open, flooding or senseless. Each keeps its connection open
// until over closes, unless the server ends it first.
func strangers() (all []farEnd) {
	noise := make([]byte, 1<<16)
	rand.Read(noise)
	long := `{"tcp":true,"time":60,"parallel":16}`
	for _, s := range []struct {
		name string
		act  func(conn *net.TCPConn, over <-chan struct{})
	}{
		{"silent", says(nil)},
		{"slow", drips(opens(long))},
		{"slow-marker", drips(append(probe.Marker[:], noise[:300]...))},
		{"half-open", func(c *net.TCPConn, over <-chan struct{}) { c.Write(noise[:10]); c.CloseWrite(); <-over }},
		{"half-open-test", func(c *net.TCPConn, over <-chan struct{}) { c.Write(opens(long)); c.CloseWrite(); <-over }},
		{"resets", func(c *net.TCPConn, _ <-chan struct{}) { c.SetLinger(0) }},
		{"garbage", says(noise[:4096])},
		{"web-browser", says([]byte("GET / HTTP/1.1\r\nHost: example\r\n\r\n"))},
		{"marker-and-garbage", says(append(probe.Marker[:], noise[:4096]...))},
		{"flood", floods(noise, noise)},
		{"flood-behind-marker", floods(append(probe.Marker[:], noise...), noise)},
		{"flood-behind-parameters", floods(opens(long), noise)},
		{"length-of-4-GB", says(append(opens("")[:iperf3.CookieSize], 0xff, 0xff, 0xff, 0xff))},
		{"parameters-of-other-types", says(opens(`{"tcp":1,"time":{},"parallel":[],"title":7}`))},
		{"parameters-absurd",
			says(opens(`{"udp":true,"time":1e300,"parallel":-1,"len":1e18,"bandwidth":-1e300,"pacing_timer":1e300}`))},
		{"escapes",
			says(opens(`{"tcp":true,"time":1,"title":"\u001b[2J\nFORGED","congestion":"\u001b[2J","client_version":"\u202e\nFORGED"}`))},
		{"test-without-streams", says(opens(long))},
		{"udp-test-without-streams", says(opens(`{"udp":true,"time":60,"parallel":128}`))},
		{"small-window-without-stream", says(opens(`{"tcp":true,"time":60,"window":4096}`))},
		{"mirror", mirror},
	} {
		all = append(all, farEnd{name: "stranger-" + s.name, kind: "stranger", stranger: s.act})
	}
	return all
}

// opens begins an iperf3 test with these parameters.
func opens(params string) []byte {
	c := iperf3.NewCookie()
	return append(binary.BigEndian.AppendUint32(c[:], uint32(len(params))), params...)
}

func says(text []byte) func(*net.TCPConn, <-chan struct{}) {
	return func(c *net.TCPConn, over <-chan struct{}) { c.Write(text); <-over }
}

func drips(text []byte) func(*net.TCPConn, <-chan struct{}) {
	return func(c *net.TCPConn, over <-chan struct{}) {
		tick := time.NewTicker(50 * time.Millisecond)
		defer tick.Stop()
		for _, b := range text {
			if _, err := c.Write([]byte{b}); err != nil {
				return
			}
			select {
			case <-tick.C:
			case <-over:
				return
			}
		}
		<-over
	}
}

func floods(first, noise []byte) func(*net.TCPConn, <-chan struct{}) {
	return func(c *net.TCPConn, over <-chan struct{}) {
		c.SetDeadline(time.Now().Add(time.Second))
		for _, err := c.Write(first); err == nil; _, err = c.Write(noise) {
			select {
			case <-over:
				return
			default:
			}
		}
	}
}

// mirror knows the marker and no key: it makes a TLS session and sends the server's own
// proof back as the client's.
func mirror(c *net.TCPConn, over <-chan struct{}) {
	t, err := clientTLS(c)
	if err != nil {
		return
	}
	proof := make([]byte, 32)
	if _, err := t.Read(proof); err != nil {
		return
	}
	t.Write(proof)
	select { // an admitted client would be greeted
	case <-over:
	case <-greeted(t):
	}
}

// come makes n hostile connections to a server, some at a time, and sends some datagrams. It returns the number of
// connections made.
func come(ways []farEnd, address string, n, atOnce int, hold time.Duration) int {
	var made, left atomic.Int64
	left.Store(int64(n))
	udp, err := net.Dial("udp", address)
	if err == nil {
		defer udp.Close()
	}
	var coming sync.WaitGroup
	for worker := range atOnce {
		coming.Go(func() {
			for i := worker; left.Add(-1) >= 0; i++ {
				if udp != nil {
					udp.Write([]byte("9876"))
				}
				conn, err := net.Dial("tcp", address)
				if err != nil {
					continue
				}
				made.Add(1)
				over := make(chan struct{})
				leave := time.AfterFunc(hold, func() { close(over); conn.SetDeadline(time.Unix(1, 0)) })
				ways[i%len(ways)].stranger(conn.(*net.TCPConn), over)
				leave.Stop()
				conn.Close()
			}
		})
	}
	coming.Wait()
	return int(made.Load())
}
