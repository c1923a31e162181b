package paths

import (
	"encoding/json"
	"net/netip"
	"testing"
	"time"
)

// FuzzRestore checks that windows can be added to a baseline from a damaged file or one of another version.
func FuzzRestore(f *testing.F) {
	h := simulate(many(3, 1), 3*time.Hour, nil, func(Event) {})
	text, err := json.Marshal(h)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Add([]byte(`{"Networks":{"192.0.2.0/24":null}}`))
	f.Add([]byte(`{"networks":{"10.0.0.0/24":{"rtt":null,"loss":{"windows":[[1,2,3]]}}}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		var h Host
		if json.Unmarshal(text, &h) != nil {
			return
		}
		h.Restore()
		window := Window{RTT: 0.02, Rate: 1e6, Segments: 1000, Retransmitted: 1, Reordered: 2, MTU: 1500, ECN: "none"}
		windows := map[netip.Prefix]Window{netip.MustParsePrefix("10.0.0.0/24"): window}
		for p := range h.Networks {
			windows[p] = window
		}
		for i := range 3 {
			h.Add(time.Unix(1_790_000_000+int64(i)*300, 0), windows)
		}
		if _, err := json.Marshal(h); err != nil {
			t.Errorf("it cannot be stored again: %v", err)
		}
	})
}
