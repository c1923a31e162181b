package iperf3

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// Results are the results that each end sends after a test.
type Results struct {
	// CPUTotal, CPUUser and CPUSystem are percent of one core.
	CPUTotal  float64 `json:"cpu_util_total"`
	CPUUser   float64 `json:"cpu_util_user"`
	CPUSystem float64 `json:"cpu_util_system"`
	// SenderHasRetransmits is 1 or 0 at a sender, -1 at a pure receiver.
	SenderHasRetransmits int             `json:"sender_has_retransmits"`
	Congestion           string          `json:"congestion_used,omitempty"`
	OutputText           string          `json:"server_output_text,omitempty"`
	OutputJSON           json.RawMessage `json:"server_output_json,omitempty"`
	Streams              []StreamResult  `json:"streams"`
}

// StreamResult is one stream as one end counted it. A receiver counts bytes that arrived, a sender bytes written
// to its kernel.
type StreamResult struct {
	ID          int     `json:"id"`
	Bytes       int64   `json:"bytes"`
	Retransmits int64   `json:"retransmits"` // -1: unknown
	Jitter      float64 `json:"jitter"`      // s
	Errors      int64   `json:"errors"`      // datagrams lost
	Packets     int64   `json:"packets"`     // datagrams, including lost ones
	// The omitted counts cover the omitted time. Either both keys are sent or none.
	OmittedErrors  *int64  `json:"omitted_errors,omitempty"`
	OmittedPackets *int64  `json:"omitted_packets,omitempty"`
	Start          float64 `json:"start_time"` // s
	End            float64 `json:"end_time"`   // s
	// Extended is fullpipe's addition, which iperf3 ignores.
	Extended *ExtendedCounts `json:"fullpipe,omitempty"`
}

// ExtendedCounts are fullpipe's additional counts of a UDP stream. Variation covers all streams of the direction.
type ExtendedCounts struct {
	Received   int64               `json:"received"` // including duplicates
	Reordered  int64               `json:"reordered"`
	Duplicates int64               `json:"duplicates"`
	Variation  *transfer.Variation `json:"variation_ns,omitempty"`
	// SocketDrops are the lost datagrams that the receiving socket dropped; nil: not known.
	SocketDrops *int64   `json:"socket_drops,omitempty"`
	Host        *float64 `json:"host_busy_ratio,omitempty"` // of the whole machine, during the test
}

// ParseResults parses the far end's results. It requires the keys that every version sends.
func ParseResults(text []byte) (Results, error) {
	o, err := parseObject(text)
	if err != nil {
		return Results{}, err
	}
	if err := o.require("cpu_util_total", "cpu_util_user", "cpu_util_system", "sender_has_retransmits",
		"streams"); err != nil {
		return Results{}, err
	}
	var r Results
	var all []error
	number := func(to *float64, key string) {
		v, err := o.number(key)
		*to = v
		all = append(all, err)
	}
	number(&r.CPUTotal, "cpu_util_total")
	number(&r.CPUUser, "cpu_util_user")
	number(&r.CPUSystem, "cpu_util_system")
	has, err := o.counter("sender_has_retransmits")
	r.SenderHasRetransmits = int(min(has, 1))
	all = append(all, err)
	r.Congestion, err = o.text("congestion_used", 64)
	if err == nil && !transfer.Printable(r.Congestion) {
		err = fmt.Errorf("congestion_used: %+q is no congestion control", r.Congestion)
	}
	all = append(all, err)
	r.OutputText, err = o.text("server_output_text", MaxServerResults)
	all = append(all, err)
	r.OutputJSON = o["server_output_json"]
	if err := errors.Join(all...); err != nil {
		return Results{}, err
	}
	var streams []json.RawMessage
	if err := json.Unmarshal(o["streams"], &streams); err != nil {
		return Results{}, fmt.Errorf("streams: %w", err)
	}
	if len(streams) > 2*MaxStreams {
		return Results{}, fmt.Errorf("results of %d streams; a test has at most %d", len(streams), 2*MaxStreams)
	}
	for n, text := range streams {
		s, err := parseObject(text)
		if err != nil {
			return Results{}, fmt.Errorf("result %d: %w", n+1, err)
		}
		one, err := s.stream()
		if err != nil {
			return Results{}, fmt.Errorf("result %d: %w", n+1, err)
		}
		r.Streams = append(r.Streams, one)
	}
	return r, nil
}

func (o object) require(keys ...string) error {
	for _, key := range keys {
		if !o.has(key) {
			return fmt.Errorf("no %q in it", key)
		}
	}
	return nil
}

func (o object) stream() (StreamResult, error) {
	if err := o.require("id", "bytes", "retransmits", "jitter", "errors", "packets"); err != nil {
		return StreamResult{}, err
	}
	if o.has("omitted_errors") != o.has("omitted_packets") {
		return StreamResult{}, errors.New("only one of omitted_errors and omitted_packets")
	}
	var s StreamResult
	var all []error
	count := func(to *int64, key string) {
		v, err := o.counter(key)
		*to = v
		all = append(all, err)
	}
	id, err := o.integer("id", 1, 1<<31-1)
	s.ID = int(id)
	all = append(all, err)
	count(&s.Bytes, "bytes")
	count(&s.Retransmits, "retransmits")
	count(&s.Errors, "errors")
	count(&s.Packets, "packets")
	if o.has("omitted_errors") {
		s.OmittedErrors = new(int64)
		s.OmittedPackets = new(int64)
		count(s.OmittedErrors, "omitted_errors")
		count(s.OmittedPackets, "omitted_packets")
	}
	if raw, ok := o["fullpipe"]; ok {
		if err := json.Unmarshal(raw, &s.Extended); err != nil {
			all = append(all, fmt.Errorf("fullpipe: %w", err))
		}
	}
	s.Jitter, err = o.seconds("jitter")
	all = append(all, err)
	s.Start, err = o.seconds("start_time")
	all = append(all, err)
	s.End, err = o.seconds("end_time")
	all = append(all, err)
	return s, errors.Join(all...)
}

// Stream returns the result with the given stream id.
func (r *Results) Stream(id int) (StreamResult, bool) {
	for _, s := range r.Streams {
		if s.ID == id {
			return s, true
		}
	}
	return StreamResult{}, false
}
