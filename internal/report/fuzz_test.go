package report

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/verdict/live"
)

// FuzzFarEnd checks that every report of a far end is either rejected or gives a document that can be stored and
// read again.
func FuzzFarEnd(f *testing.F) {
	f.Add([]byte(`{"kernel":"Linux 6.18","streams":[{"bytes":1000000,"last_ns":1000000000,"samples":[{"at_ns":0},`+
		`{"at_ns":500000000,"have":65535,"rtt_ns":40000000,"cwnd":50000,"acked":500000,"sent":500000},`+
		`{"at_ns":1000000000,"have":65535,"rtt_ns":41000000,"cwnd":70000,"acked":1000000,"sent":1000000}]}]}`), true)
	f.Add([]byte(`{"streams":[{"bytes":1,"first_ns":1,"last_ns":1,"opening":1}],"cpu":{"wall_ns":1}}`), false)
	const wall = time.Second
	f.Fuzz(func(t *testing.T, said []byte, up bool) {
		var far transfer.End
		if json.Unmarshal(said, &far) != nil {
			return
		}
		spec := transfer.Spec{Direction: transfer.Down, Time: wall, Streams: len(far.Streams)}
		if up {
			spec.Direction = transfer.Up
		}
		if far.Validate(spec, wall) != nil {
			return
		}
		near := &transfer.End{Kernel: "Linux 6.18"}
		for range max(spec.Streams, 1) {
			near.Streams = append(near.Streams, transfer.Stream{Bytes: 1e6, Last: wall, Samples: []transfer.Sample{
				{At: wall / 2, Have: transfer.HaveProgram, Program: 5e5},
				{At: wall, Have: transfer.HaveProgram, Program: 1e6}}})
		}
		r := &transfer.Result{Spec: spec, Near: near, Far: &far, Complete: true}
		doc := &record.Measure{Header: record.Header{Schema: "fullpipe/measure/v1"}, Near: Host(near), Far: Host(&far),
			Directions: []record.Direction{Direction(r, live.Judge(r), nil)}}
		text, err := record.Encode(doc)
		if err != nil {
			t.Fatalf("it cannot be stored: %v", err)
		}
		if _, err := record.Decode(text, nil); err != nil {
			t.Errorf("it cannot be read again: %v", err)
		}
	})
}
