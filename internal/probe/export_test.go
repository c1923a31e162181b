package probe

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
