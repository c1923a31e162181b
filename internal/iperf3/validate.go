package iperf3

import (
	"fmt"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/units"
)

// validate checks the far end's counts of a test with at most the given streams that lasted at most wall on this
// host's clock. It returns nil or *transfer.UnbelievableError.
func (r *Results) validate(streams int, wall time.Duration) error {
	no := func(field string, value any, why string, args ...any) error {
		return &transfer.ImplausibleError{Field: field, Value: value, Reason: fmt.Sprintf(why, args...)}
	}
	maxTime := transfer.MaxElapsed(wall)
	maxCount := transfer.MaxBytes(wall)
	if len(r.Streams) > streams {
		return no("streams", len(r.Streams), "where %d were opened", streams)
	}
	for i, s := range r.Streams {
		at := func(field string) string { return fmt.Sprintf("streams[%d].%s", i, field) }
		for _, c := range []struct {
			field string
			n     int64
		}{{"bytes", s.Bytes}, {"retransmits", s.Retransmits}, {"errors", s.Errors}, {"packets", s.Packets}} {
			if c.n > maxCount {
				return no(at(c.field), c.n, "is more than can have moved in %v", maxTime)
			}
		}
		for _, c := range []struct {
			field   string
			seconds float64
		}{{"jitter", s.Jitter}, {"start_time", s.Start}, {"end_time", s.End}} {
			if c.seconds > maxTime.Seconds() {
				return no(at(c.field), c.seconds, "s is longer than the test")
			}
		}
		took := units.Seconds(s.End - s.Start)
		switch {
		case s.Bytes < 0:
			return no(at("bytes"), s.Bytes, "is not a valid count")
		case s.Packets < 0:
			return no(at("packets"), s.Packets, "is not a valid count")
		case !transfer.IsPlausibleRate(s.Bytes, took):
			return no(at("bytes"), s.Bytes, "in %v", took)
		case s.Retransmits > 0 && s.Retransmits > s.Bytes+maxSYNRetries:
			return no(at("retransmits"), s.Retransmits, "for %d bytes", s.Bytes)
		}
		if err := s.Extended.validate(at, maxCount, maxTime); err != nil {
			return err
		}
	}
	return nil
}

// validate checks a stream's additional counts: none may exceed maxCount, and no time maxTime. at formats a field.
func (m *ExtendedCounts) validate(at func(string) string, maxCount int64, maxTime time.Duration) error {
	if m == nil {
		return nil
	}
	if min(m.Received, m.Reordered, m.Duplicates) < 0 || max(m.Received, m.Reordered, m.Duplicates) > maxCount {
		return &transfer.ImplausibleError{Field: at("fullpipe"), Value: *m, Reason: "are not valid datagram counts"}
	}
	if n := m.SocketDrops; n != nil && (*n < 0 || *n > maxCount) {
		return &transfer.ImplausibleError{Field: at("fullpipe.socket_drops"), Value: *n,
			Reason: "is not a valid datagram count"}
	}
	if m.Host != nil && !(*m.Host >= 0 && *m.Host <= 1) {
		return &transfer.ImplausibleError{Field: at("fullpipe.host_busy_ratio"), Value: *m.Host,
			Reason: "is not between 0 and 1"}
	}
	if v := m.Variation; v != nil && (min(v.Median, v.P95, v.P99, v.Largest) < 0 ||
		max(v.Median, v.P95, v.P99, v.Largest) > maxTime) {
		return &transfer.ImplausibleError{Field: at("fullpipe.variation_ns"), Value: *v,
			Reason: "is longer than the test"}
	}
	return nil
}

// maxSYNRetries is the largest tcp_syn_retries of Linux.
const maxSYNRetries = 127

// validateCounts checks a receiver's counts against the datagrams that this end sent.
func (r *Results) validateCounts(sent int64, size int) error {
	var packets, bytes, duplicates int64
	hasCounts := len(r.Streams) > 0
	for _, s := range r.Streams {
		packets += s.Packets
		bytes += s.Bytes
		hasCounts = hasCounts && s.Extended != nil
		if hasCounts {
			duplicates += s.Extended.Duplicates
		}
	}
	if !hasCounts { // iperf3 does not report duplicates, so each datagram may have arrived duplicates
		duplicates = sent
	}
	switch {
	case packets > sent:
		return &transfer.ImplausibleError{Field: "streams[].packets", Value: packets,
			Reason: fmt.Sprintf("where %d datagrams were sent", sent)}
	case bytes > (sent+duplicates)*int64(size):
		return &transfer.ImplausibleError{Field: "streams[].bytes", Value: bytes,
			Reason: fmt.Sprintf("where %d datagrams of %d bytes were sent", sent, size)}
	}
	return nil
}

// validateArrivals checks the counters and timestamps that a sender wrote into its datagrams.
func validateArrivals(r *transfer.DatagramResult, wall time.Duration) error {
	maxTime := transfer.MaxElapsed(wall)
	switch {
	case r.Sent > transfer.MaxBytes(wall):
		return &transfer.ImplausibleError{Field: "datagrams' counter", Value: r.Sent,
			Reason: "is more than can have been sent"}
	case r.Jitter > maxTime || r.Variation != nil && r.Variation.Largest > maxTime:
		return &transfer.ImplausibleError{Field: "datagrams' times of sending", Value: r.Jitter,
			Reason: "of jitter is longer than the test"}
	}
	return nil
}
