package record

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/testenv/must"
)

// iperf3Text returns an object of iperf3 --json from the given end: "connecting_to" is the client,
// "accepted_connection" the server.
func iperf3Text(end string, reverse int) string {
	return fmt.Sprintf(`{"start":{"version":"iperf 3.12","timestamp":{"timesecs":1763000000},
		%q:{"host":"far.example.net","port":5201},"test_start":{"protocol":"TCP","num_streams":1,"reverse":%d}},
		"end":{"streams":[{"sender":{"retransmits":3,"min_rtt":20100,"mean_rtt":23000},
		"receiver":{"bytes":1000,"bits_per_second":8000}}],
		"sum_received":{"seconds":1,"bytes":1000,"bits_per_second":8000}}}`, end, reverse)
}

// TestImported_Iperf3Direction checks the direction as seen by the printing end, and that importing is deterministic.
func TestImported_Iperf3Direction(t *testing.T) {
	for _, c := range []struct {
		end     string
		reverse int
		want    string
	}{{"connecting_to", 0, "up"}, {"connecting_to", 1, "down"}, {"accepted_connection", 0, "down"},
		{"accepted_connection", 1, "up"}} {
		text := []byte(iperf3Text(c.end, c.reverse))
		doc := must.Get(Imported(text))(t)
		if again, err := Imported(text); err != nil || !bytes.Equal(doc, again) {
			t.Errorf("the second import differs: %v", err)
		}
		decoded := must.Get(Decode(doc, nil))(t)
		m := decoded.(*Measure)
		d := &m.Directions[0]
		if string(d.Direction) != c.want || *d.GoodputBps != 8000 || *d.RetransmittedSegment != 3 ||
			d.RTTMin.Seconds() != 0.0201 || d.Limiter != "unknown" || m.Peer != "iperf3://far.example.net" || m.Outcome != Done {
			t.Errorf("%s, reverse %d: %s", c.end, c.reverse, doc)
		}
	}
}

// TestImported_InterruptedClient checks that the goodput is absent, not 0: an interrupted client never received the
// receiver's counters.
func TestImported_InterruptedClient(t *testing.T) {
	text := strings.NewReplacer(`"bytes":1000`, `"bytes":0`, `"bits_per_second":8000`, `"bits_per_second":0`,
		`{"start":`, `{"error":"interrupt - the client has terminated","start":`).Replace(iperf3Text("connecting_to", 0))
	doc, err := Imported([]byte(text))
	if err != nil || bytes.Contains(doc, []byte("goodput")) || !bytes.Contains(doc, []byte("the client has terminated")) {
		t.Errorf("%v: %s", err, doc)
	}
}

func TestImportedRefuses(t *testing.T) {
	good := iperf3Text("connecting_to", 0)
	for name, text := range map[string]string{
		"no far end":   strings.Replace(good, "connecting_to", "connecting", 1),
		"no time":      strings.Replace(good, "1763000000", "0", 1),
		"no true rate": strings.Replace(good, `"bits_per_second":8000}}}`, `"bits_per_second":1e30}}}`, 1),
		"no sums":      strings.Replace(good, "sum_received", "sum_lost", 1),
		"other JSON":   `{"a":1}`,
		"no object":    `[1]`,
		"more datagrams lost than sent": `{"start":{"timestamp":{"timesecs":1},"connecting_to":{"host":"h"},
			"test_start":{"protocol":"UDP"}},"end":{"sum":{"packets":5,"lost_packets":6}}}`,
	} {
		if doc, err := Imported([]byte(text)); err == nil {
			t.Errorf("%s: accepted as %s", name, doc)
		}
	}
}

func FuzzImported(f *testing.F) {
	f.Add([]byte(iperf3Text("connecting_to", 0)))
	f.Add([]byte(`{"schema":"fullpipe/measure/v1","started_at":"2026-03-01T12:00:00Z","peer":"b","directions":[]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		doc, err := Imported(text)
		if err != nil {
			return
		}
		if _, err := Decode(doc, nil); err != nil {
			t.Errorf("the imported document cannot be decoded: %v", err)
		}
	})
}
