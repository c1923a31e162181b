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

// Limits on messages of the other end, in bytes.
const (
	maxRequest  = 64 << 10 // a client's message
	maxAnswer   = 64 << 10 // a server's message except results
	maxOften    = 4 << 10  // a message of either end that is sent many times during a transfer
	maxResult   = 2 << 20  // a compressed result
	maxUnpacked = 6 << 20  // a decompressed result: 4000 samples of up to 1 kB, and more
)

// maxElements limits the elements of a result's arrays: streams, samples and warnings. They are counted before
// decoding, because three bytes of text may become a Sample of hundreds of bytes.
func maxElements(streams int) int { return 8192 + 4*streams + 64 }

// elements returns a lower bound of the elements in all arrays of a JSON text.
func elements(text []byte) (n int) {
	var inArray []bool // one per open level
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

// kind is the first byte of a message.
type kind byte

const (
	kindHello    kind = 'H' // server: its properties
	kindOffer    kind = 'O' // client: request a transfer
	kindAccept   kind = 'A' // server: accept or refuse an offer
	kindProgress kind = 'P' // server: received data; also keepalive
	kindStop     kind = 'S' // client: stop the running transfer
	kindResult   kind = 'R' // server: its measurement, compressed
	kindEcho     kind = 'E' // client: echo request; the server replies with the same kind. Requires Hello.Echo
	kindGrant    kind = 'G' // client: request an iperf3 test; answered by accept
)

// Hello announces a server's properties.
type Hello struct {
	// Version is for old clients without Versions: the lowest that the server supports.
	Version int `json:"version"`
	// Versions are the supported versions; nil: only Version.
	Versions *Versions `json:"versions,omitempty"`
	// KeyID is the ID of the key that the client proved.
	KeyID      string   `json:"key_id,omitempty"`
	Software   string   `json:"software"`
	Kernel     string   `json:"kernel"`
	Congestion []string `json:"congestion,omitempty"` // available to Spec.Far, the default first
	Limits     Limits   `json:"limits"`
	// Echo: the server replies to echoes, also during a transfer.
	Echo bool `json:"echo,omitempty"`
	// Search: its UDP ends support rate search with feedback.
	Search bool `json:"search,omitempty"`
	// Requests: it responds to loads of requests (Spec.Requests).
	Requests bool `json:"requests,omitempty"`
	// TimeNs is the server's clock when it wrote this, ns of UTC since 1970.
	TimeNs int64 `json:"time_ns,omitempty"`
	// Busy: the server has its maximum number of clients.
	Busy bool `json:"busy,omitempty"`
	// NotFrom is the client's address as the server sees it, if its key is not valid for that; Busy is set too.
	NotFrom string `json:"not_from,omitempty"`
	// Place is the client's place in a busy server's queue. Each change is sent in a new hello. Without Busy the
	// client's turn has come.
	Place int `json:"place,omitempty"`
}

// Limits are a server's limits for one client. Zero means that the feature is not supported.
type Limits struct {
	Time    time.Duration `json:"time_ns"`
	Bytes   int64         `json:"bytes"`
	Streams int           `json:"streams"`
	Buffer  int           `json:"buffer"` // SendBuffer, ReceiveBuffer and Clamp
	// Bps limits the payload of one transfer over all streams, bit/s; 0: unlimited.
	Bps float64 `json:"bps,omitempty"`
	// Options: the server's system can set windows before listen(), clamps, and per-socket congestion control, MSS
	// and pacing.
	Options bool `json:"options"`
}

type offer struct {
	// Version is the highest common version; 0, from old clients: 1.
	Version int           `json:"version,omitempty"`
	Spec    transfer.Spec `json:"spec"`
	// TestID identifies the test in both ends' records; "": none.
	TestID string `json:"test_id,omitempty"`
	// Ports are the local ports of the data connections, so that the server can identify them by their SYN. From
	// is the port of the control connection, which shows whether a NAT changes ports.
	Ports []uint16 `json:"ports,omitempty"`
	From  uint16   `json:"from,omitempty"`
}

// accept is the reply to an offer: tokens, or a refusal in Field and Error.
type accept struct {
	Tokens   []string `json:"tokens,omitempty"`
	Port     int      `json:"port,omitempty"` // of the data connections; 0: the control connection's
	Field    string   `json:"field,omitempty"`
	Error    string   `json:"error,omitempty"`
	Warnings []string `json:"warnings,omitempty"`
}

type progressMessage struct {
	Interval *transfer.Interval `json:"interval,omitempty"`
}

type result struct {
	// Stopped: the only error is that the client sent Stop.
	Stopped  bool          `json:"stopped,omitempty"`
	End      *transfer.End `json:"end,omitempty"`
	Error    string        `json:"error,omitempty"`
	Warnings []string      `json:"warnings,omitempty"`
}

// writeMessage writes one message: a 4-byte big-endian length, the kind and JSON. Results are compressed by
// deflate (RFC 1951).
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
	if frame.Len()-4 > maxResult {
		return fmt.Errorf("a message of %d bytes is too long to send", frame.Len()-4)
	}
	b := frame.Bytes()
	binary.BigEndian.PutUint32(b, uint32(len(b)-4))
	b[4] = byte(k)
	_, err = w.Write(b)
	return err
}

// message is one received frame.
type message struct {
	kind kind
	text []byte // decompressed JSON
}

// readMessage reads one frame of at most limit bytes, or maxAnswer if it is no result.
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
	switch m.kind {
	case kindResult:
	case kindProgress, kindEcho, kindStop:
		limit = maxOften
	default:
		limit = maxAnswer
	}
	if int64(length) > int64(limit) {
		return message{}, fmt.Errorf("message %q of %d bytes (at most %d are allowed)", m.kind, length, limit)
	}
	// The buffer grows with received bytes, not with the announced length.
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
	text, err := io.ReadAll(io.LimitReader(flate.NewReader(&b), maxUnpacked+1))
	if err != nil {
		return message{}, fmt.Errorf("unpack a result: %w", err)
	}
	if len(text) > maxUnpacked {
		return message{}, fmt.Errorf("a result of more than %d bytes", maxUnpacked)
	}
	m.text = text
	return m, nil
}

// decodeResult decodes the result of a transfer that was offered wall ago. Impossible or excessive values are an
// error.
func (m message) decodeResult(spec transfer.Spec, wall time.Duration) (r result, err error) {
	streams := max(spec.Streams, 1)
	if n := elements(m.text); n > maxElements(streams) {
		return r, fmt.Errorf("a result of %d streams, samples and warnings for %d streams", n, streams)
	}
	if err := m.decode(kindResult, &r); err != nil {
		return result{}, err
	}
	if err := transfer.ValidateNotes(r.Warnings); err != nil {
		return result{}, err
	}
	const maxError = 4 << 10 // bytes; honest ends join one per stream
	r.Error = r.Error[:min(len(r.Error), maxError)]
	if r.End != nil {
		if err := r.End.Validate(spec, wall); err != nil {
			return result{}, err
		}
	}
	return r, nil
}

// check validates a server's hello.
func (h *Hello) check() error {
	const maxNames = 64
	if h.TimeNs < 0 {
		return errors.New("a hello from before 1970")
	}
	if len(h.Software) > 256 || len(h.Kernel) > 256 || len(h.Congestion) > maxNames {
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

// check validates the fields of an offer.
func (o *offer) check() error {
	if o.Version < 0 || o.Version != 0 && (o.Version < minVersion || o.Version > Version) {
		return errBadVersion
	}
	if !validTestID(o.TestID) {
		return &transfer.Unsupported{Field: "TestID", Reason: "it is no UUID"}
	}
	return nil
}

// validTestID reports whether a text is empty or a UUID (RFC 9562).
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

// check validates an accept against the offer.
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
