package web

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/ndt7"
	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/testenv/must"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// FuzzTold sends any report of a browser. The server refuses it or makes a document that can be stored and decoded.
// The goodput is at most 30 % above that of the acknowledged bytes.
func FuzzTold(f *testing.F) {
	f.Add(`{"phases":[{"name":"down1","connections":1,"bytes":1000000,"first_ms":0,"last_ms":1000,"rtt_ms":[20]},` +
		`{"name":"up1","connections":1,"idle_ratio":0.1,"late_ratio":1e300,"rtt_ms":[20]}],"idle_rtt_ms":[10,11]}`)
	f.Add(`{"phases":[{"name":"down1","connections":1,"bytes":-1,"first_ms":1e308,"last_ms":-1e308}],` +
		`"idle_rtt_ms":[1e99]}`)
	s := NewSpeed(SpeedConfig{})
	const second = time.Second
	tested := func(id, phase string) *ndt7.Test {
		down := strings.HasPrefix(phase, "down")
		sample := transfer.Sample{At: second, Have: transfer.HaveAcked | transfer.HaveProgram, Acked: 1e6, Program: 1e6,
			RTT: 20 * time.Millisecond}
		return &ndt7.Test{Download: down, Query: url.Values{runKey: {id}, phaseKey: {phase}}, Started: time.Now(),
			Client: netip.MustParseAddrPort("192.0.2.1:5"), Stream: transfer.Stream{Bytes: 1e6, Last: second,
				Samples: []transfer.Sample{{At: second / 2}, sample}}}
	}
	f.Fuzz(func(t *testing.T, body string) {
		var asked browserReport // so that all connections it waits for have ended
		if json.Unmarshal([]byte(body), &asked) != nil {
			asked.Phases = nil
		}
		id := must.Get(s.runs.begin(netip.MustParsePrefix("192.0.2.1/32"), time.Now()))(t)
		defer s.runs.finish(id, nil, 0)
		for i, p := range asked.Phases {
			if i == maxPhases {
				break
			}
			for range min(max(p.Connections, 0), 9) {
				s.runs.done(tested(id, p.Name))
			}
		}
		r := httptest.NewRequest(http.MethodPost, "/test/x/result", strings.NewReader(body))
		r.SetPathValue("run", id)
		doc, err := s.result(r)
		if err != nil {
			return
		}
		text, err := record.Encode(doc)
		if err != nil {
			t.Fatalf("encode: %v", err)
		}
		if _, err := record.Decode(text, nil); err != nil {
			t.Errorf("decode: %v", err)
		}
		for _, d := range doc.Directions {
			if d.GoodputBps != nil && *d.GoodputBps > 8e6*float64(len(d.Streams))*1.3 {
				t.Errorf("%v bit/s of %d streams", *d.GoodputBps, len(d.Streams))
			}
		}
	})
}
