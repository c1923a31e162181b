package diagnose

import (
	"slices"
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/advice"
	"github.com/fullpipe-net/fullpipe/internal/flow"
	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
	"github.com/fullpipe-net/fullpipe/internal/verdict/timeline"
)

// TestTargets_NeedEvidenceOfTheSystem checks that settings are planned only for a system that a SYN points to.
func TestTargets_NeedEvidenceOfTheSystem(t *testing.T) {
	linux := flow.Offer{Seen: true, TTL: 57, Scale: 7, SACK: true, Timestamps: true}
	larger := linux
	larger.Scale = 10
	macOS := linux
	macOS.Scale = 6
	mixed := linux
	mixed.TTL = 128
	cut := linux
	cut.OptionsCut = true
	windows := []string{"windows-11", "server-2012"}
	for name, c := range map[string]struct {
		offer flow.Offer
		want  []string
	}{
		"Linux":                         {linux, []string{"linux"}},
		"Linux with larger buffers":     {larger, []string{"linux"}},
		"macOS":                         {macOS, nil},
		"Windows":                       {flow.Offer{Seen: true, TTL: 117, Scale: 8, SACK: true}, windows},
		"a device of TTL 255":           {flow.Offer{Seen: true, TTL: 250, Scale: 8, SACK: true}, nil},
		"Linux's options, Windows' TTL": {mixed, nil},
		"Windows without window scale":  {flow.Offer{Seen: true, TTL: 128, Scale: -1, SACK: true}, nil},
		"a capture that cuts options":   {cut, nil},
		"no handshake":                  {flow.Offer{Scale: -1}, nil},
	} {
		if got := targets(c.offer); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// TestFixes_SystemNeedsEvidence checks that settings of one system are planned only where the sender's SYN gives
// evidence of it, or where it is stated.
func TestFixes_SystemNeedsEvidence(t *testing.T) {
	client := flow.Endpoint4(1, 40000)
	server := flow.Endpoint4(2, 443)
	all := flow.HasMSS | flow.HasScale | flow.HasSACKPermitted | flow.HasTimestamps
	for _, test := range []struct {
		name     string
		syn      *flow.Segment // nil: not captured
		target   string
		system   advice.System
		settings bool
	}{
		{"Linux", &flow.Segment{TTL: 63, Options: all, Scale: 7}, "", advice.Linux, true},
		{"Windows", &flow.Segment{TTL: 121, Options: all &^ flow.HasTimestamps, Scale: 8}, "", advice.Windows, false},
		{"macOS or FreeBSD", &flow.Segment{TTL: 64, Options: all, Scale: 6}, "", advice.Linux, false},
		{"Solaris", &flow.Segment{TTL: 250, Options: all, Scale: 5}, "", advice.Linux, false},
		{"no handshake", nil, "", advice.Linux, false},
		{"stated", nil, "linux", advice.Linux, true},
	} {
		table := flow.NewTable(flow.Config{})
		if s := test.syn; s != nil {
			s.Src = client
			s.Dst = server
			s.Seq = 999
			s.Flags = flow.SYN
			table.Add(s)
		}
		table.Add(&flow.Segment{At: 1e6, Src: client, Dst: server, Seq: 1000, Ack: 5000, Flags: flow.ACK, Payload: 1460,
			TTL: 64})
		c := table.Finish()[0]
		g := &timeline.Diagnosis{Verdict: verdict.Verdict{Limiter: verdict.Congestion, Confidence: verdict.High}}
		for _, fix := range fixes(&record.CapturedDirection{}, g, c, c.Directions()[0], test.target) {
			if fix.Action == advice.OtherControl && (fix.System != test.system || (len(fix.Settings) > 0) != test.settings) {
				t.Errorf("%s: in the words of %q, %v", test.name, fix.System, fix.Settings)
			}
		}
	}
}
