package probe

// Exports for tests that simulate either end.
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

// ForgetEcho simulates a server without echoes.
func (c *Client) ForgetEcho() { c.control.hello.Echo = false }

func (m message) Decode(k kind, into any) error { return m.decode(k, into) }
