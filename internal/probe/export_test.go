package probe

import "time"

// Silent ends are waited for more briefly in tests.
func init() {
	connectTime, resultTime, stopTime, stallTime = time.Second, time.Second, 500*time.Millisecond, 1500*time.Millisecond
}

// What tests need to play either end.
var (
	WriteMessage = writeMessage
	ReadMessage  = readMessage
	SecureClient = secureClient
)

const (
	KindHello, KindOffer, KindAccept   = kindHello, kindOffer, kindAccept
	KindProgress, KindStop, KindResult = kindProgress, kindStop, kindResult
)

type (
	Offer  = offer
	Accept = accept
	Answer = result
)

// ForgetEcho makes the server one that knows no echoes.
func (c *Client) ForgetEcho() { c.control.hello.Echo = false }

func (m message) Decode(k kind, into any) error { return m.decode(k, into) }
