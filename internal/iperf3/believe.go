package iperf3

import (
	"fmt"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/units"
)

// believe checks what the far end counted in a test of at most so many streams that
// lasted at most wall on this end's clock: nil, or *transfer.UnbelievableError.
func (r *Results) believe(streams int, wall time.Duration) error {
	no := func(field string, value any, why string, args ...any) error {
		return &transfer.UnbelievableError{Field: field, Value: value, Why: fmt.Sprintf(why, args...)}
	}
	longest := transfer.Longest(wall)
	most := transfer.MostBytes(wall)
	if len(r.Streams) > streams {
		return no("streams", len(r.Streams), "where %d were opened", streams)
	}
	for i, s := range r.Streams {
		at := func(field string) string { return fmt.Sprintf("streams[%d].%s", i, field) }
		for _, c := range []struct {
			field string
			n     int64
		}{{"bytes", s.Bytes}, {"retransmits", s.Retransmits}, {"errors", s.Errors}, {"packets", s.Packets}} {
			if c.n > most {
				return no(at(c.field), c.n, "is more than can have moved in %v", longest)
			}
		}
		for _, c := range []struct {
			field   string
			seconds float64
		}{{"jitter", s.Jitter}, {"start_time", s.Start}, {"end_time", s.End}} {
			if c.seconds > longest.Seconds() {
				return no(at(c.field), c.seconds, "s is longer than the test")
			}
		}
		took := units.Seconds(s.End - s.Start)
		switch {
		case s.Bytes < 0:
			return no(at("bytes"), s.Bytes, "is no count")
		case s.Packets < 0:
			return no(at("packets"), s.Packets, "is no count")
		case !transfer.CanCome(s.Bytes, took):
			return no(at("bytes"), s.Bytes, "in %v", took)
		case s.Retransmits > 0 && s.Retransmits > s.Bytes+mostHandshakes:
			return no(at("retransmits"), s.Retransmits, "for %d bytes", s.Bytes)
		}
		if m := s.More; m != nil {
			if min(m.Received, m.Reordered, m.Duplicates) < 0 || max(m.Received, m.Reordered, m.Duplicates) > most {
				return no(at("fullpipe"), *m, "are no counts of datagrams")
			}
			if v := m.Variation; v != nil && (min(v.Median, v.P95, v.P99, v.Largest) < 0 || max(v.Median, v.P95, v.P99,
				v.Largest) > longest) {
				return no(at("fullpipe.variation_ns"), *v, "is longer than the test")
			}
		}
	}
	return nil
}

// mostHandshakes is how often a SYN may have been sent again (Linux: tcp_syn_retries).
const mostHandshakes = 127

// believeCounts checks a receiver's counts against what this end sent.
func (r *Results) believeCounts(sent int64, size int) error {
	var packets, bytes, twice int64
	told := len(r.Streams) > 0
	for _, s := range r.Streams {
		packets += s.Packets
		bytes += s.Bytes
		told = told && s.More != nil
		if told {
			twice += s.More.Duplicates
		}
	}
	if !told { // a network may deliver some datagrams twice, iperf3 does not say which
		twice = sent
	}
	switch {
	case packets > sent:
		return &transfer.UnbelievableError{Field: "streams[].packets", Value: packets,
			Why: fmt.Sprintf("where %d datagrams were sent", sent)}
	case bytes > (sent+twice)*int64(size):
		return &transfer.UnbelievableError{Field: "streams[].bytes", Value: bytes,
			Why: fmt.Sprintf("where %d datagrams of %d bytes were sent", sent, size)}
	}
	return nil
}

// believeArrivals checks what a sender wrote into its datagrams.
func believeArrivals(r *transfer.DatagramResult, wall time.Duration) error {
	longest := transfer.Longest(wall)
	switch {
	case r.Sent > transfer.MostBytes(wall):
		return &transfer.UnbelievableError{Field: "datagrams' counter", Value: r.Sent, Why: "is more than can have been sent"}
	case r.Jitter > longest || r.Variation != nil && r.Variation.Largest > longest:
		return &transfer.UnbelievableError{Field: "datagrams' times of sending", Value: r.Jitter,
			Why: "of jitter is longer than the test"}
	}
	return nil
}
