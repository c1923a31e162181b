package record

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// Document is any of the objects that fullpipe prints and stores: each begins with a
// Header.
type Document interface{ Head() *Header }

// Head returns the document's header.
func (h *Header) Head() *Header { return h }

// MostBytes is the maximum size of a document to decode.
const MostBytes = 64 << 20

// ErrUnknown reports an object that is no document of fullpipe, or of a kind that is unknown to this version.
var ErrUnknown = errors.New("not a document that this version knows")

// Kinds lists an empty document of each kind, by name. Several kinds may have the
// schema of one command; kindOf distinguishes them.
func Kinds() map[string]Document {
	return map[string]Document{
		"apply": &Apply{}, "audit": &Audit{}, "measure": &Measure{}, "measure-udp": &MeasureUDP{},
		"measure-capacity": &Capacity{}, "measure-requests": &MeasureRequests{},
		"measure-compare": &Compare{}, "diagnose": &Diagnose{}, "exec": &Exec{}, "plan": &Plan{}, "predict": &Predict{},
		"failed": &CommandFailed{}, "rfc6349": &RFC6349{}, "status": &Status{}, "sweep": &Sweep{}, "tune": &Tune{},
		"undo":  &Undo{},
		"watch": &Watch{}, "why": &Watch{}, "watch-kept": &WatchKept{},
		"history": &History{}, "changes": &Changes{}, "difference": &Difference{}, "days": &Days{},
		"recheck": &Recheck{},
	}
}

// Encode returns the JSON of a document as printed and stored, without its samples.
func Encode(doc Document) ([]byte, error) { return EncodeAny(doc) }

// EncodeAny returns the JSON of any object of the contract, also without a Header, such as the lines of serve.
func EncodeAny(doc any) ([]byte, error) {
	var b bytes.Buffer
	err := WriteAny(&b, doc)
	return b.Bytes(), err
}

// WriteAny writes what EncodeAny returns, which may be large.
func WriteAny(w io.Writer, doc any) error {
	compact, err := json.Marshal(doc)
	if err != nil {
		return err
	}
	return indent(w, compact)
}

// EncodeSamples returns the JSON of the document's samples, nil if it has none.
func EncodeSamples(doc Document) ([]byte, error) {
	samples := SamplesOf(doc)
	if samples == nil {
		return nil, nil
	}
	return json.Marshal(samples)
}

// Decode reads a document, with samples that may be absent. Keys that this version does
// not know are ignored. The error is ErrUnknown where the text is JSON but no document.
func Decode(text, samples []byte) (Document, error) {
	for _, part := range [][]byte{text, samples} {
		if err := checkSize(part); err != nil {
			return nil, fmt.Errorf("a document too large to be one of fullpipe's: %w", err)
		}
	}
	kind, err := kindOf(text)
	if err != nil {
		return nil, err
	}
	doc := Kinds()[kind]
	if err := json.Unmarshal(text, doc); err != nil {
		return nil, fmt.Errorf("a %s document: %w", kind, err)
	}
	if err := check(doc); err != nil {
		return nil, fmt.Errorf("a %s document: %w", kind, err)
	}
	var inside struct {
		Samples json.RawMessage `json:"samples"`
	}
	if len(samples) == 0 && json.Unmarshal(text, &inside) == nil {
		samples = inside.Samples
	}
	if len(samples) > 0 {
		var s Samples
		if err := json.Unmarshal(samples, &s); err != nil {
			return nil, fmt.Errorf("samples of a %s document: %w", kind, err)
		}
		s.attach(doc)
	}
	return doc, nil
}

// kindOf returns the kind of an object by its schema, and by its keys if several kinds have the same schema.
func kindOf(text []byte) (string, error) {
	var probe struct {
		Schema     string          `json:"schema"`
		Peers      json.RawMessage `json:"peers"`
		Error      json.RawMessage `json:"error"`
		Cells      json.RawMessage `json:"cells"`
		Changes    json.RawMessage `json:"changes"`
		Minutes    json.RawMessage `json:"minutes"`
		Requests   json.RawMessage `json:"requests_per_s"`
		Directions []struct {
			Protocol string          `json:"protocol"`
			Capacity json.RawMessage `json:"ip_capacity_bps"`
		} `json:"directions"`
	}
	var wrong *json.UnmarshalTypeError
	if err := json.Unmarshal(text, &probe); err != nil && !errors.As(err, &wrong) {
		return "", err
	}
	command, isOurs := strings.CutPrefix(probe.Schema, "fullpipe/")
	name, version, _ := strings.Cut(command, "/")
	nothing := len(probe.Directions) == 0 && probe.Requests == nil && probe.Cells == nil && probe.Changes == nil &&
		probe.Peers == nil
	switch {
	case !isOurs:
		return "", fmt.Errorf("%w: there is no \"schema\": \"fullpipe/…\"", ErrUnknown)
	case version != "v1":
		return "", fmt.Errorf("%w: %q", ErrUnknown, probe.Schema)
	case len(probe.Error) > 0 && nothing:
		return "failed", nil
	case name == "measure" && probe.Requests != nil:
		name = "measure-requests"
	case name == "measure" && len(probe.Peers) > 0:
		name = "measure-compare"
	case name == "measure" && len(probe.Directions) > 0 && len(probe.Directions[0].Capacity) > 0:
		name = "measure-capacity"
	case name == "measure" && len(probe.Directions) > 0 && probe.Directions[0].Protocol == "udp":
		name = "measure-udp"
	case name == "watch" && len(probe.Minutes) > 0:
		name = "watch-kept"
	case strings.Contains(name, "-") || name == "failed":
		return "", fmt.Errorf("%w: %q", ErrUnknown, probe.Schema)
	}
	if Kinds()[name] == nil {
		return "", fmt.Errorf("%w: %q", ErrUnknown, probe.Schema)
	}
	return name, nil
}
