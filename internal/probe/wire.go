package probe

import (
	"bytes"
	"compress/flate"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// Version of the protocol; docs/protocol.md describes it. Two ends of different
// versions do not work together.
const Version = 1

// Bounds on what is read from the other end, in bytes.
const (
	maxFrame  = 2 << 20  // of one message as it travels
	maxInflat = 16 << 20 // of one result, unpacked
)

// kind is a message's first byte.
type kind byte

const (
	kindHello    kind = 'H' // server: who I am
	kindOffer    kind = 'O' // client: carry this out with me
	kindAccept   kind = 'A' // server: this is how, or why not
	kindProgress kind = 'P' // server: what arrived; also shows that it lives
	kindStop     kind = 'S' // client: end the transfer under way
	kindResult   kind = 'R' // server: what I saw, compressed
	kindEcho     kind = 'E' // client: answer this with the same; sent to servers whose hello knows it
	kindGrant    kind = 'G' // client: admit an iperf3 test of mine; answered by accept
)

// Hello is what a server tells of itself.
type Hello struct {
	Version    int      `json:"version"`
	Software   string   `json:"software"`
	Kernel     string   `json:"kernel"`
	Congestion []string `json:"congestion,omitempty"` // what Spec.Far may choose from, the default first
	Limits     Limits   `json:"limits"`
	// Echo says that the server answers echoes, also during a transfer.
	Echo bool `json:"echo,omitempty"`
	// Search says that its UDP receivers and senders give and follow feedback.
	Search bool `json:"search,omitempty"`
}

// Limits are the most that a server does for one client. Zero fields are features that
// it does not have.
type Limits struct {
	Time    time.Duration `json:"time_ns"`
	Bytes   int64         `json:"bytes"`
	Streams int           `json:"streams"`
	Buffer  int           `json:"buffer"` // SendBuffer, ReceiveBuffer and Clamp
	// Bps bounds one transfer's payload over all its streams, in bit/s; 0: no bound.
	Bps float64 `json:"bps,omitempty"`
	// Options says that this server's system can set windows before listen(), clamps,
	// congestion control, MSS and pacing of one socket.
	Options bool `json:"options"`
}

type offer struct {
	Spec transfer.Spec `json:"spec"`
	// Ports are those that the data connections will come from, which lets the server
	// tell them apart before it sees more than their SYN; From is the control
	// connection's, which tells whether ports arrive as they left.
	Ports []uint16 `json:"ports,omitempty"`
	From  uint16   `json:"from,omitempty"`
}

// accept answers an offer: tokens, or a refusal in Field and Error.
type accept struct {
	Tokens   []string `json:"tokens,omitempty"`
	Port     int      `json:"port,omitempty"` // where the streams connect to; 0: the control connection's
	Field    string   `json:"field,omitempty"`
	Error    string   `json:"error,omitempty"`
	Warnings []string `json:"warnings,omitempty"`
}

type progressMessage struct {
	Interval *transfer.Interval `json:"interval,omitempty"`
}

type result struct {
	End      *transfer.End `json:"end,omitempty"`
	Error    string        `json:"error,omitempty"`
	Warnings []string      `json:"warnings,omitempty"`
}

// writeMessage frames one message: a 4-byte big-endian length of what follows, the
// kind, and JSON (a result's is compressed by deflate, RFC 1951).
func writeMessage(w io.Writer, k kind, body any) error {
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	frame := bytes.NewBuffer(make([]byte, 5, 5+len(text)))
	if k == kindResult {
		z, _ := flate.NewWriter(frame, flate.BestCompression)
		z.Write(text)
		z.Close()
	} else {
		frame.Write(text)
	}
	if frame.Len()-4 > maxFrame {
		return fmt.Errorf("a message of %d bytes is too long to send", frame.Len()-4)
	}
	b := frame.Bytes()
	binary.BigEndian.PutUint32(b, uint32(len(b)-4))
	b[4] = byte(k)
	_, err = w.Write(b)
	return err
}

// message is one frame as it was read.
type message struct {
	kind kind
	text []byte // JSON, unpacked
}

// readMessage reads one frame; limit bounds its length.
func readMessage(r io.Reader, limit int) (message, error) {
	var head [5]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return message{}, err
	}
	length := binary.BigEndian.Uint32(head[:])
	if length < 1 || int64(length) > int64(limit) {
		return message{}, fmt.Errorf("a message of %d bytes (at most %d are allowed)", length, limit)
	}
	m := message{kind: kind(head[4])}
	// The buffer grows with what really comes, not with what was announced.
	var b bytes.Buffer
	if n, err := io.CopyN(&b, r, int64(length-1)); err != nil {
		if n > 0 && err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return message{}, err
	}
	m.text = b.Bytes()
	if m.kind != kindResult {
		return m, nil
	}
	text, err := io.ReadAll(io.LimitReader(flate.NewReader(&b), maxInflat+1))
	if err != nil {
		return message{}, fmt.Errorf("unpack a result: %w", err)
	}
	if len(text) > maxInflat {
		return message{}, fmt.Errorf("a result of more than %d bytes", maxInflat)
	}
	m.text = text
	return m, nil
}

func (m message) decode(k kind, into any) error {
	if m.kind != k {
		return fmt.Errorf("message %q where %q was expected", m.kind, k)
	}
	if err := json.Unmarshal(m.text, into); err != nil {
		return fmt.Errorf("message %q: %w", k, err)
	}
	return nil
}
