package probe

import (
	"bytes"
	"compress/flate"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// Bounds on what is read from the other end, in bytes.
const (
	mostRequest  = 64 << 10 // of a client's message
	mostAnswer   = 64 << 10 // of a server's message that is no result
	mostResult   = 2 << 20  // of a result as it travels
	mostUnpacked = 6 << 20  // of a result unpacked: 4000 samples of at most 1 kB and some
)

// mostElements bounds what a result's arrays hold in all: streams, samples and warnings.
// They are counted before any of them takes memory: three bytes of text may stand for a
// Sample of hundreds.
func mostElements(streams int) int { return 8192 + 4*streams + 64 }

// elements counts the elements of all arrays of a JSON text, at least.
func elements(text []byte) (n int) {
	var inArray []bool // for each level that is open
	var quoted, fresh bool
	for i := 0; i < len(text); i++ {
		c := text[i]
		if quoted {
			if c == '\\' {
				i++
			}
			quoted = c != '"'
			continue
		}
		switch c {
		case ' ', '\t', '\n', '\r':
			continue
		case ']', '}':
			fresh = false
			inArray = inArray[:max(len(inArray)-1, 0)]
			continue
		case ',':
			fresh = len(inArray) > 0 && inArray[len(inArray)-1]
			continue
		}
		if fresh { // the first byte of an element
			n++
			fresh = false
		}
		switch c {
		case '"':
			quoted = true
		case '[', '{':
			inArray = append(inArray, c == '[')
			fresh = c == '['
		}
	}
	return n
}

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
	// Version is what ends from before Versions go by: the least that the server speaks.
	Version int `json:"version"`
	// Versions are those that the server speaks; nil: Version alone.
	Versions *Versions `json:"versions,omitempty"`
	// KeyID is the ID of the key that the client has proven.
	KeyID      string   `json:"key_id,omitempty"`
	Software   string   `json:"software"`
	Kernel     string   `json:"kernel"`
	Congestion []string `json:"congestion,omitempty"` // what Spec.Far may choose from, the default first
	Limits     Limits   `json:"limits"`
	// Echo says that the server answers echoes, also during a transfer.
	Echo bool `json:"echo,omitempty"`
	// Search says that its UDP receivers and senders give and follow feedback.
	Search bool `json:"search,omitempty"`
	// TimeNs is the server's clock when it wrote this, nanoseconds of UTC since 1970.
	TimeNs int64 `json:"time_ns,omitempty"`
	// Busy says that the server has as many clients as it takes.
	Busy bool `json:"busy,omitempty"`
	// Place says of a busy server that it lets the client wait, as the nth from now: hello
	// comes again when that changes, and without Busy when its turn has come.
	Place int `json:"place,omitempty"`
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
	// Version is the highest that both ends speak; 0, from ends before Versions, is 1.
	Version int           `json:"version,omitempty"`
	Spec    transfer.Spec `json:"spec"`
	// TestID names the test in both ends' records; empty: it has none.
	TestID string `json:"test_id,omitempty"`
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
	// Stopped says that Error is only that the client had it stopped.
	Stopped  bool          `json:"stopped,omitempty"`
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
	if frame.Len()-4 > mostResult {
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

// readMessage reads one frame; limit bounds its length, and mostAnswer that of a message
// which is no result.
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
	if m.kind != kindResult && length > mostAnswer {
		return message{}, fmt.Errorf("message %q of %d bytes (at most %d are allowed)", m.kind, length, mostAnswer)
	}
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
	text, err := io.ReadAll(io.LimitReader(flate.NewReader(&b), mostUnpacked+1))
	if err != nil {
		return message{}, fmt.Errorf("unpack a result: %w", err)
	}
	if len(text) > mostUnpacked {
		return message{}, fmt.Errorf("a result of more than %d bytes", mostUnpacked)
	}
	m.text = text
	return m, nil
}

// decodeResult reads a result of a transfer by a Spec that was offered wall ago. What
// cannot be true, or is more than an honest end sends, is an error.
func (m message) decodeResult(spec transfer.Spec, wall time.Duration) (r result, err error) {
	streams := max(spec.Streams, 1)
	if n := elements(m.text); n > mostElements(streams) {
		return r, fmt.Errorf("a result of %d streams, samples and warnings for %d streams", n, streams)
	}
	if err := m.decode(kindResult, &r); err != nil {
		return result{}, err
	}
	if err := transfer.BelieveNotes(r.Warnings); err != nil {
		return result{}, err
	}
	const mostError = 4 << 10 // bytes; honest ends join one for each stream
	r.Error = r.Error[:min(len(r.Error), mostError)]
	if r.End != nil {
		if err := r.End.Believe(spec, wall); err != nil {
			return result{}, err
		}
	}
	return r, nil
}

// check holds a hello to what an honest server says of itself.
func (h *Hello) check() error {
	const mostNames = 64
	if h.TimeNs < 0 {
		return errors.New("a hello from before 1970")
	}
	if len(h.Software) > 256 || len(h.Kernel) > 256 || len(h.Congestion) > mostNames {
		return errors.New("a hello longer than any server's")
	}
	if !transfer.Printable(h.Software) || !transfer.Printable(h.Kernel) {
		return errors.New("a hello with names that no server has")
	}
	for _, name := range h.Congestion {
		if len(name) > 64 || !transfer.Printable(name) {
			return errors.New("a hello with a congestion control that no system has")
		}
	}
	return nil
}

// check holds an offer's own fields to what they may be.
func (o *offer) check() error {
	if o.Version < 0 || o.Version != 0 && (o.Version < leastVersion || o.Version > Version) {
		return errBadVersion
	}
	if !validTestID(o.TestID) {
		return &transfer.Unsupported{Field: "TestID", Why: "it is no UUID"}
	}
	return nil
}

// validTestID says whether a text is empty or has the form of a UUID (RFC 9562).
func validTestID(id string) bool {
	if id == "" {
		return true
	}
	if len(id) != 36 {
		return false
	}
	for i := range len(id) {
		dash := i == 8 || i == 13 || i == 18 || i == 23
		if c := id[i]; dash != (c == '-') || !dash && !strings.ContainsRune("0123456789abcdef", rune(c)) {
			return false
		}
	}
	return true
}

// check holds an accept to what was offered.
func (a *accept) check(streams int) error {
	if len(a.Tokens) != streams {
		return fmt.Errorf("%d stream tokens for %d streams", len(a.Tokens), streams)
	}
	for _, t := range a.Tokens {
		if len(t) != PrefaceSize {
			return fmt.Errorf("a stream token of %d bytes", len(t))
		}
	}
	if a.Port < 0 || a.Port > 65535 {
		return fmt.Errorf("port %d for the streams", a.Port)
	}
	return nil
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
