package probe

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"strings"
)

// PrefaceSize is the length of the preface of each connection, as in iperf3's protocol.
const PrefaceSize = 37

// Preface is the beginning of a connection: Marker, a stream's token or an iperf3 cookie.
type Preface [PrefaceSize]byte

// Marker opens a control connection. An iperf3 server takes it for a cookie and sends PARAM_EXCHANGE. No iperf3
// client sends it: iperf3's cookies have a-z2-7 and end with NUL.
var Marker = Preface([]byte("FULLPIPE/1 CONTROL ------------------"))

// The server's first byte after Marker.
const (
	AnswerFullpipe = 'F'
	AnswerBusy     = 'B'
	// AnswerIperf3 is iperf3's PARAM_EXCHANGE, answerIperf3Busy its ACCESS_DENIED.
	AnswerIperf3     = 9
	answerIperf3Busy = 0xff
)

// NewToken returns a token for one data stream: 27 random bytes as 36 characters of base64url, and a newline where
// a cookie has NUL.
func NewToken() Preface {
	var random [27]byte
	rand.Read(random[:])
	var t Preface
	base64.RawURLEncoding.Encode(t[:], random[:])
	t[PrefaceSize-1] = '\n'
	return t
}

// Key is the shared secret of a server and its clients.
type Key [32]byte

// NewKey returns a random key.
func NewKey() Key {
	var k Key
	rand.Read(k[:])
	return k
}

// String returns the key as 64 hexadecimal digits.
func (k Key) String() string { return hex.EncodeToString(k[:]) }

// ParseKey parses the text of String. It ignores surrounding white space.
func ParseKey(text string) (Key, error) {
	b, err := hex.DecodeString(strings.TrimSpace(text))
	if err != nil || len(b) != len(Key{}) {
		return Key{}, fmt.Errorf("not a key: a key is 64 hexadecimal digits, as fullpipe serve prints them")
	}
	return Key(b), nil
}
