// Package iperf3 speaks iperf3's protocol in both roles, so that any host with iperf3
// can be the far end of a measurement and any iperf3 client can use our server.
//
// A test has one control connection, on which both sides exchange states of one byte
// and two rounds of JSON framed by a big-endian length, and one connection (or UDP
// flow) for each stream, which the client opens to the same port:
//
//	client cookie → 9 → client's parameters → 10 → streams open → 1, 2 → data
//	→ client 4 → 13 → client's results, server's results → 14 → client 16
//
// The server's version is never sent, so what a server can do is found out by asking.
package iperf3

import (
	"crypto/rand"
	"fmt"
	"io"
)

// DefaultPort is where iperf3 listens.
const DefaultPort = 5201

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
	AccessDenied    State = -1 // busy, or not for you
	ServerError     State = -2 // two big-endian int32 follow: iperf3's code and an errno
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

// ReadState reads one state. It takes one byte and no more, because two states can
// arrive together and JSON or an error code may follow.
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

// CookieSize is the length of what opens every connection of a test.
const CookieSize = 37

// Cookie names a test: 36 characters and a NUL. Other implementations' cookies are
// opaque bytes.
type Cookie [CookieSize]byte

// NewCookie draws a cookie as iperf3 does.
func NewCookie() Cookie {
	const alphabet = "abcdefghijklmnopqrstuvwxyz234567"
	var c Cookie
	rand.Read(c[:CookieSize-1])
	for i := range c[:CookieSize-1] {
		c[i] = alphabet[c[i]%byte(len(alphabet))]
	}
	return c
}

// StreamID is the number of the nth stream, from 0: 1, 3, 4, 5, … (2 is skipped).
func StreamID(n int) int {
	if n == 0 {
		return 1
	}
	return n + 2
}
