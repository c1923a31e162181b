package iperf3

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/testenv/must"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

func TestResults_RejectsImpossibleCounts(t *testing.T) {
	honest := func() *Results {
		return &Results{Streams: []StreamResult{{ID: 1, Bytes: 1e6, Retransmits: 3, Packets: 1000, Errors: 10, End: 1.01,
			Extended: &ExtendedCounts{Received: 990, Variation: &transfer.Variation{Largest: time.Millisecond}}}}}
	}
	check := func(r *Results) error {
		if err := r.validate(1, time.Second); err != nil {
			return err
		}
		return r.validateCounts(1000, 1000)
	}
	must.Do(t, check(honest()))
	for field, change := range map[string]func(*StreamResult){
		"streams[0].bytes":                    func(s *StreamResult) { s.Bytes = 1 << 62 },
		"streams[].bytes":                     func(s *StreamResult) { s.Bytes = 2e6 },
		"streams[0].retransmits":              func(s *StreamResult) { s.Retransmits = 1e7 },
		"streams[].packets":                   func(s *StreamResult) { s.Packets = 1001 },
		"streams[0].packets":                  func(s *StreamResult) { s.Packets = 1 << 61 },
		"streams[0].errors":                   func(s *StreamResult) { s.Errors = 1 << 61 },
		"streams[0].jitter":                   func(s *StreamResult) { s.Jitter = 1e5 },
		"streams[0].end_time":                 func(s *StreamResult) { s.End = 2e5 },
		"streams[0].fullpipe":                 func(s *StreamResult) { s.Extended.Duplicates = -1 },
		"streams[0].fullpipe.host_busy_ratio": func(s *StreamResult) { s.Extended.Host = new(1.5) },
		"streams[0].fullpipe.variation_ns":    func(s *StreamResult) { s.Extended.Variation.P99 = time.Hour },
	} {
		r := honest()
		change(&r.Streams[0])
		var u *transfer.ImplausibleError
		if err := check(r); !errors.As(err, &u) || u.Field != field {
			t.Errorf("%s: %v", field, err)
		}
	}
	for _, change := range []func(*StreamResult){func(s *StreamResult) { s.Bytes = -1 },
		func(s *StreamResult) { s.Packets = -1 },
		func(s *StreamResult) { s.Bytes, s.End = 1e6, s.Start+2e-9 }} {
		r := honest()
		if change(&r.Streams[0]); r.validate(1, time.Second) == nil {
			t.Errorf("%+v is accepted", r.Streams[0])
		}
	}
	more := honest()
	more.Streams = append(more.Streams, more.Streams...)
	if more.validate(1, time.Second) == nil {
		t.Error("an unopened stream is accepted")
	}
	for _, r := range []transfer.DatagramResult{{Sent: 1 << 62}, {Jitter: time.Hour},
		{Variation: &transfer.Variation{Largest: time.Hour}}} {
		if validateArrivals(&r, time.Second) == nil {
			t.Errorf("%+v is accepted", r)
		}
	}
	const head = `{"cpu_util_total":1,"cpu_util_user":0,"cpu_util_system":1,"sender_has_retransmits":1,"streams":[]`
	if _, err := ParseResults([]byte(head + `,"congestion_used":"\u001b]0;x\u0007"}`)); err == nil ||
		strings.Contains(err.Error(), "\x1b") {
		t.Errorf("a terminal's escape for a congestion control: %v", err)
	}
}
