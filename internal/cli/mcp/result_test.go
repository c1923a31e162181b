package mcp

import (
	"fmt"
	"strings"
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// TestResults_OfLimits checks the results of commands that were ended at a limit.
func TestResults_OfLimits(t *testing.T) {
	for name, c := range map[string]struct {
		outcome outcome
		failed  bool
		want    string
	}{
		"too long": {outcome{tooLong: true}, true, "has more than"},
		"nothing":  {outcome{timeout: true}, true, "before there was a result"},
		"incomplete": {outcome{timeout: true, output: storedDocument(t, "diagnose")}, false,
			"before the result was complete"},
		"complete":       {outcome{output: storedDocument(t, "diagnose")}, false, ""},
		"another object": {outcome{output: []byte(`{"a":"` + strings.Repeat("x", maxStructured) + `"}`)}, true, "at most"},
	} {
		r, err := decoded(c.outcome, 10)
		if err != nil || r.Failed != c.failed || !strings.Contains(r.Text[1], c.want) || len(r.Text[1]) > maxData*2 {
			t.Errorf("%s: %v, %.300v", name, err, r)
		}
	}
	if r, err := decoded(outcome{output: []byte("no JSON")}, 10); err == nil {
		t.Errorf("%v", r)
	}
}

// TestResults_PlacesOfLoss checks that the text and the structured content of tools have the places of loss.
func TestResults_PlacesOfLoss(t *testing.T) {
	share := 1.0
	d := record.Direction{Direction: transfer.Up, Streams: []record.Stream{}, LostAt: []record.LostAt{{Place: "firewall",
		Side: record.ReceiverHost, Reason: "NETFILTER_DROP", Segments: 217, Bytes: 313_832, Share: &share,
		Watched: record.BothHosts}}}
	watched := record.WatchedDirection{Direction: transfer.Up, LostAt: d.LostAt}
	for _, doc := range []record.Document{
		&record.Measure{Header: record.Header{Schema: "fullpipe/measure/v1"}, Directions: []record.Direction{d}},
		&record.Watch{Header: record.Header{Schema: "fullpipe/why/v1"}, Target: "rsync",
			Connections: []record.WatchedConnection{{Directions: []record.WatchedDirection{watched}}}},
	} {
		encoded, err := record.Encode(doc)
		if err != nil {
			t.Fatal(err)
		}
		r, err := decoded(outcome{output: encoded}, 10)
		if err != nil || r.Failed || !strings.Contains(r.Text[1], "the receiver's firewall (NETFILTER_DROP, input hook)") ||
			!strings.Contains(fmt.Sprintf("%s", r.Structured), `"lost_at":[{"place":"firewall","side":"receiver-host"`) {
			t.Errorf("%v, %v, %s", err, r.Text, r.Structured)
		}
	}
}
