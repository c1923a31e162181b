package main

import (
	"bytes"
	"math"
	"strings"
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/host"
	"github.com/fullpipe-net/fullpipe/internal/record"
)

// FuzzEachDocument: whatever stands in a file that is imported, each document that is taken out of it can
// be read again.
func FuzzEachDocument(f *testing.F) {
	f.Add([]byte(`{"schema":"fullpipe/measure/v1","started_at":"2026-03-01T12:00:00Z","peer":"b","directions":[],` +
		`"samples":{"series":[]}}` + "\n{}"))
	f.Add([]byte("[1]"))
	f.Fuzz(func(t *testing.T, text []byte) {
		_ = eachDocument(bytes.NewReader(text), func(doc, samples []byte) error { // neither panics nor hangs
			if _, err := record.Decode(doc, nil); err != nil {
				t.Errorf("what is kept cannot be read: %v", err)
			}
			return nil
		}, func(error) error { return nil })
	})
}

// FuzzPathOf: a path that is taken out of a document is one that can be planned for.
func FuzzPathOf(f *testing.F) {
	f.Add([]byte(`{"schema":"fullpipe/tune/v1","directions":[{"path":{"bottleneck_bps":1e8,"rtt_min_s":0.04}}]}`))
	f.Add([]byte(`{"rate_bps":1e308,"rtt_s":1e-308}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		if p, err := pathOf(text); err == nil && (p.RTT < 0 || !(p.RateBps > 0) || math.IsInf(p.RateBps, 0)) {
			t.Errorf("%+v", p)
		}
	})
}

// FuzzMeasuredPaths: paths that are taken out of a document are ones that can be planned for.
func FuzzMeasuredPaths(f *testing.F) {
	f.Add([]byte(`{"schema":"fullpipe/tune/v1","directions":[{"path":{"bottleneck_bps":1e8,"rtt_min_s":1e300,` +
		`"jitter_s":-1}}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		paths, err := measuredPaths(text)
		if err != nil {
			return
		}
		for _, p := range paths {
			if p.RTT < 0 || p.Jitter < 0 || !(p.RateBps > 0) {
				t.Errorf("%+v", p)
			}
		}
	})
}

// FuzzPlanFile: whatever a plan says, what it would have apply change is the network's alone, and no value goes on
// in a line of its own.
func FuzzPlanFile(f *testing.F) {
	f.Add([]byte(`{"schema":"fullpipe/plan/v1","settings":[{"name":"net.ipv4.tcp_rmem","where":"/proc/sys/",` +
		`"type":"min default max","value":"4096 131072 25034752"}],"route":{"prefix":"192.0.2.0/24"}}`))
	f.Add([]byte(`{"schema":"fullpipe/tune/v1","far":{"address":"192.0.2.1"},"directions":[{"settings":[{"host":"near",` +
		`"name":"initcwnd","where":"of the route","type":"integer","value":"20"}]}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		p, err := parsePlan(text, "plan.json")
		if err != nil {
			return
		}
		changes, err := host.Changes(p.Settings, p.Route.Prefix)
		if err != nil {
			return
		}
		for _, c := range changes {
			if c.Kind == host.Sysctl && !strings.HasPrefix(c.Name, "net.") ||
				c.Value != nil && strings.ContainsAny(*c.Value, "\n\r\x00") {
				t.Errorf("%+v", c)
			}
		}
	})
}
