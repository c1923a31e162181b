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

// Limits on JSON that the other side sends, in bytes. Servers since 3.18 take at most
// 8 KiB of parameters; results may hold 256 streams, and a server's text where it is asked
// for, which this project's clients never do.
const (
	MaxParams        = 8 << 10
	MaxClientResults = 256 << 10
	MaxServerResults = 1 << 20
)

// ReadFrame reads one length and that many bytes, at most limit. Memory is taken as the
// bytes arrive, so a length alone costs nothing.
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

// WriteFrame sends v as JSON with its length in one write.
func WriteFrame(w io.Writer, v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	frame := binary.BigEndian.AppendUint32(make([]byte, 0, 4+len(text)), uint32(len(text)))
	_, err = w.Write(append(frame, text...))
	return err
}

// object is a decoded JSON object whose members keep their types until they are asked
// for: a value of the wrong type is an error and never taken for another one.
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

// number answers 0 for an absent key.
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

// integer answers a whole number from least to most, and 0 for an absent key.
func (o object) integer(key string, least, most int64) (int64, error) {
	v, err := o.number(key)
	if err != nil || !o.has(key) {
		return 0, err
	}
	if v != math.Trunc(v) || v < float64(least) || v > float64(most) {
		return 0, fmt.Errorf("%s: %v is not a whole number from %d to %d", key, v, least, most)
	}
	return int64(v), nil
}

// counter answers a count of bytes or packets. iperf3 prints its -1 ("not known") as
// 2^64-1, which comes out as -1 again.
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

// seconds answers a time from 0 to a year.
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

// flag reads what iperf3 sends as literal true or not at all.
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

// bit reads what iperf3 sends as the number 0 or 1.
func (o object) bit(key string) (bool, error) {
	v, err := o.integer(key, 0, 1)
	return v == 1, err
}

func (o object) text(key string, most int) (string, error) {
	raw, ok := o[key]
	if !ok {
		return "", nil
	}
	var v *string
	if err := json.Unmarshal(raw, &v); err != nil || v == nil {
		return "", fmt.Errorf("%s: want a string, not %.20s", key, raw)
	}
	if len(*v) > most {
		return "", fmt.Errorf("%s: %d characters where at most %d are allowed", key, len(*v), most)
	}
	return *v, nil
}
