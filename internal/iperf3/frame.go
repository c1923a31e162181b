package iperf3

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
)

// Limits on received JSON, in bytes. Servers since 3.18 accept 8 KiB of parameters. Results hold up to 256 streams
// and, if requested, the server's output.
const (
	MaxParams        = 8 << 10
	MaxClientResults = 256 << 10
	MaxServerResults = 1 << 20
)

// ReadFrame reads a length and that many bytes, at most limit. It allocates memory only as bytes arrive.
func ReadFrame(r io.Reader, limit int) ([]byte, error) {
	var length [4]byte
	if _, err := io.ReadFull(r, length[:]); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(length[:])
	if int64(n) > int64(limit) {
		return nil, fmt.Errorf("a message of %d bytes where at most %d are allowed", n, limit)
	}
	var text bytes.Buffer
	if _, err := io.CopyN(&text, r, int64(n)); err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return nil, err
	}
	return text.Bytes(), nil
}

// WriteFrame sends the length of v's JSON and the JSON in one write.
func WriteFrame(w io.Writer, v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	frame := binary.BigEndian.AppendUint32(make([]byte, 0, 4+len(text)), uint32(len(text)))
	_, err = w.Write(append(frame, text...))
	return err
}

// object is a decoded JSON object. Its methods return an error for members of the wrong type.
type object map[string]json.RawMessage

func parseObject(text []byte) (object, error) {
	var o object
	if err := json.Unmarshal(text, &o); err != nil {
		return nil, fmt.Errorf("not a JSON object: %w", err)
	}
	if o == nil {
		return nil, errors.New("not a JSON object: null")
	}
	return o, nil
}

func (o object) has(key string) bool { _, ok := o[key]; return ok }

// number returns 0 for an absent key.
func (o object) number(key string) (float64, error) {
	raw, ok := o[key]
	if !ok {
		return 0, nil
	}
	var v *float64
	if err := json.Unmarshal(raw, &v); err != nil || v == nil {
		return 0, fmt.Errorf("%s: want a number, not %.20s", key, raw)
	}
	return *v, nil
}

// integer returns a whole number from lowest to highest, or 0 for an absent key.
func (o object) integer(key string, lowest, highest int64) (int64, error) {
	v, err := o.number(key)
	if err != nil || !o.has(key) {
		return 0, err
	}
	if v != math.Trunc(v) || v < float64(lowest) || v > float64(highest) {
		return 0, fmt.Errorf("%s: %v is not a whole number from %d to %d", key, v, lowest, highest)
	}
	return int64(v), nil
}

// counter returns a count of bytes or packets. It returns -1 for iperf3's "unknown", which is sent as 2^64-1.
func (o object) counter(key string) (int64, error) {
	v, err := o.number(key)
	switch {
	case err != nil:
		return 0, err
	case v < 0 || v >= 1<<63:
		return -1, nil
	}
	return int64(v), nil
}

// seconds returns a duration of up to a year.
func (o object) seconds(key string) (float64, error) {
	v, err := o.number(key)
	if err != nil {
		return 0, err
	}
	if v < 0 || v > 366*86400 {
		return 0, fmt.Errorf("%s: %v s is not a duration of a test", key, v)
	}
	return v, nil
}

// flag reads a literal true. iperf3 omits the key for false.
func (o object) flag(key string) (bool, error) {
	raw, ok := o[key]
	if !ok {
		return false, nil
	}
	var v *bool
	if err := json.Unmarshal(raw, &v); err != nil || v == nil {
		return false, fmt.Errorf("%s: want true, not %.20s", key, raw)
	}
	return *v, nil
}

// bit reads a boolean that iperf3 sends as 0 or 1.
func (o object) bit(key string) (bool, error) {
	v, err := o.integer(key, 0, 1)
	return v == 1, err
}

func (o object) text(key string, maxLen int) (string, error) {
	raw, ok := o[key]
	if !ok {
		return "", nil
	}
	var v *string
	if err := json.Unmarshal(raw, &v); err != nil || v == nil {
		return "", fmt.Errorf("%s: want a string, not %.20s", key, raw)
	}
	if len(*v) > maxLen {
		return "", fmt.Errorf("%s: %d characters where at most %d are allowed", key, len(*v), maxLen)
	}
	return *v, nil
}
