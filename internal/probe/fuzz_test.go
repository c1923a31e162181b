package probe

import (
	"bytes"
	"encoding/json"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/testenv/must"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

func FuzzReadMessage(f *testing.F) {
	for k, body := range map[kind]any{
		kindHello:  Hello{Version: 1, Limits: DefaultLimits()},
		kindOffer:  offer{Spec: transfer.Spec{Direction: transfer.Up, Time: time.Second}},
		kindAccept: accept{Tokens: []string{"x"}, Port: 7},
		kindResult: result{End: &transfer.End{Streams: []transfer.Stream{{Bytes: 5, Samples: make([]transfer.Sample, 3)}}}},
	} {
		var b bytes.Buffer
		must.Do(f, writeMessage(&b, k, body))
		f.Add(b.Bytes())
	}
	f.Add([]byte("\xff\xff\xff\xffO{}"))
	f.Add([]byte("\x00\x00\x00\x05R\x03\x00\x00\x00"))
	f.Fuzz(func(t *testing.T, wire []byte) {
		const limit = 1 << 16
		m, err := readMessage(bytes.NewReader(wire), limit)
		if err != nil {
			return
		}
		if m.kind != kindResult && len(m.text) > limit {
			t.Fatalf("%d bytes read, %d allowed", len(m.text), limit)
		}
		// Decoding any bytes as any message must not panic.
		for k, into := range map[kind]any{kindHello: &Hello{}, kindOffer: &offer{}, kindAccept: &accept{},
			kindProgress: &progressMessage{}, kindResult: &result{}, kindEcho: &echo{}} {
			if m.decode(k, into) == nil {
				if r, ok := into.(*result); ok && r.End != nil && len(r.End.Streams) > 0 {
					downsample(r.End)
				}
			}
		}
	})
}

func FuzzOffer(f *testing.F) {
	good, _ := json.Marshal(offer{Spec: transfer.Spec{Direction: transfer.Down, Bytes: 1,
		Far: transfer.Socket{ReceiveBuffer: 4096}}})
	f.Add(good)
	f.Add([]byte(`{"spec":{"direction":"up","time_ns":1,"streams":-1,"program":{"write_bps":1e308}}}`))
	f.Add([]byte(`{"spec":{"direction":"up","time_ns":1,"requests":{"request_bytes":16777216,"response_bytes":1,` +
		`"new_connections":true,"per_second":0.01}}}`))
	hello := Hello{Limits: DefaultLimits(), Congestion: []string{"cubic"}, Requests: true}
	f.Fuzz(func(t *testing.T, text []byte) {
		var o offer
		if json.Unmarshal(text, &o) != nil || hello.Check(o.Spec) != nil {
			return
		}
		s := o.Spec
		if s.Streams > hello.Limits.Streams || s.Time > hello.Limits.Time || s.Bytes > hello.Limits.Bytes ||
			s.Far.ReceiveBuffer > hello.Limits.Buffer {
			t.Fatalf("admitted beyond the limits: %+v", s)
		}
		if r := s.Requests; r.On() && (min(r.RequestBytes, r.ResponseBytes) < 1 ||
			max(r.RequestBytes, r.ResponseBytes) > 16<<20) {
			t.Fatalf("admitted requests of any size: %+v", r)
		}
	})
}

func FuzzParseKey(f *testing.F) {
	f.Add(NewKey().String())
	f.Add(" \n")
	f.Fuzz(func(t *testing.T, text string) {
		if k, err := ParseKey(text); err == nil {
			if again, err := ParseKey(k.String()); err != nil || again != k {
				t.Fatalf("%q does not survive: %v", text, err)
			}
		}
	})
}
