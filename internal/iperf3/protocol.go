// Package iperf3 implements both roles of iperf3's protocol. Any host with iperf3 can be the far end of a
// measurement, and any iperf3 client can use our server.
//
// A test has one control connection. Both ends exchange one-byte states on it, and JSON messages framed by a
// 32-bit big-endian length. The client opens a connection or UDP flow for each stream to the same port.
//
// Flow (states in parentheses):
//
// 1. The client sends a cookie of 37 bytes; the server replies ParamExchange (9).
// 2. The client sends its parameters; the server replies CreateStreams (10).
// 3. The client opens the streams, each with the cookie or a UDP hello.
// 4. The server sends TestStart (1) and TestRunning (2). Both ends move data.
// 5. The client sends TestEnd (4); the server replies ExchangeResults (13).
// 6. The client sends its results, the server its own and DisplayResults (14).
// 7. The client sends Done (16).
//
// Servers do not send their version. A client learns what a server supports by requesting it.
package iperf3

import (
	"crypto/rand"
	"fmt"
	"io"
)

// State is one byte on the control connection.
type State int8

const (
	TestStart       State = 1
	TestRunning     State = 2
	TestEnd         State = 4
	ParamExchange   State = 9
	CreateStreams   State = 10
	ServerTerminate State = 11
	ClientTerminate State = 12
	ExchangeResults State = 13
	DisplayResults  State = 14
	Done            State = 16
	AccessDenied    State = -1 // busy or not authorized
	ServerError     State = -2 // followed by iperf3's code and an errno, int32 big-endian
)

var stateNames = map[State]string{
	TestStart: "TEST_START", TestRunning: "TEST_RUNNING", TestEnd: "TEST_END", ParamExchange: "PARAM_EXCHANGE",
	CreateStreams: "CREATE_STREAMS", ServerTerminate: "SERVER_TERMINATE", ClientTerminate: "CLIENT_TERMINATE",
	ExchangeResults: "EXCHANGE_RESULTS", DisplayResults: "DISPLAY_RESULTS", Done: "IPERF_DONE",
	AccessDenied: "ACCESS_DENIED", ServerError: "SERVER_ERROR",
}

func (s State) String() string {
	if name, ok := stateNames[s]; ok {
		return name
	}
	return fmt.Sprintf("state %d", int8(s))
}

// ReadState reads one state. It reads exactly one byte, because another state, JSON or an error code may follow.
func ReadState(r io.Reader) (State, error) {
	var b [1]byte
	if _, err := io.ReadFull(r, b[:]); err != nil {
		return 0, err
	}
	return State(int8(b[0])), nil
}

// WriteState sends one state.
func WriteState(w io.Writer, s State) error {
	_, err := w.Write([]byte{byte(s)})
	return err
}

// CookieSize is the length of a cookie in bytes.
const CookieSize = 37

// Cookie identifies a test. iperf3's cookies have 36 characters and a NUL, others are opaque.
type Cookie [CookieSize]byte

// NewCookie returns a random cookie with iperf3's alphabet.
func NewCookie() Cookie {
	const alphabet = "abcdefghijklmnopqrstuvwxyz234567"
	var c Cookie
	rand.Read(c[:CookieSize-1])
	for i := range c[:CookieSize-1] {
		c[i] = alphabet[c[i]%byte(len(alphabet))]
	}
	return c
}

// StreamID returns the id of the nth stream, counted from 0: 1, 3, 4, 5, … (iperf3 skips 2).
func StreamID(n int) int {
	if n == 0 {
		return 1
	}
	return n + 2
}
