package probe

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"strings"
)

// PrefaceSize is how many bytes open every connection to a server, in this protocol
// and in iperf3's.
const PrefaceSize = 37

// Preface is what a connection begins with: Marker, a stream's Token or an iperf3
// cookie.
type Preface [PrefaceSize]byte

// Marker opens a control connection. An iperf3 server takes it for a cookie and
// answers its PARAM_EXCHANGE; no iperf3 client sends it, whose cookies are of a-z2-7
// and end with NUL.
var Marker = Preface([]byte("FULLPIPE/1 CONTROL ------------------"))

// What a server's first byte after Marker says.
const (
	AnswerFullpipe = 'F'
	AnswerBusy     = 'B'
	// AnswerIperf3 is iperf3's PARAM_EXCHANGE, answerIperf3Busy its ACCESS_DENIED.
	AnswerIperf3     = 9
	answerIperf3Busy = 0xff
)

// NewToken makes the preface of one data stream: 27 random bytes, a base64url text of
// 36, ended by a newline where a cookie has NUL.
func NewToken() Preface {
	var random [27]byte
	rand.Read(random[:])
	var t Preface
	base64.RawURLEncoding.Encode(t[:], random[:])
	t[PrefaceSize-1] = '\n'
	return t
}

// Key is the secret that a server and its clients share.
type Key [32]byte

// NewKey makes a random key.
func NewKey() Key {
	var k Key
	rand.Read(k[:])
	return k
}

// String is the key as users pass it on: 64 hexadecimal digits.
func (k Key) String() string { return hex.EncodeToString(k[:]) }

// ParseKey reads what String wrote; white space around it does not matter.
func ParseKey(text string) (Key, error) {
	b, err := hex.DecodeString(strings.TrimSpace(text))
	if err != nil || len(b) != len(Key{}) {
		return Key{}, fmt.Errorf("not a key: a key is 64 hexadecimal digits, as fullpipe serve prints them")
	}
	return Key(b), nil
}
