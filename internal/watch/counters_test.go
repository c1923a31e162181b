package watch

import "testing"

// TestCeilings_Reached recognises automatic buffers at their ceiling.
func TestCeilings_Reached(t *testing.T) {
	for _, c := range []struct {
		limits ceilings
		socket Snapshot
		want   ceilings
	}{
		{ceilings{4 << 20, 6 << 20}, Snapshot{SendBuffer: 4 << 20, ReceiveBuffer: 131072}, ceilings{4 << 20, 0}},
		{ceilings{4 << 20, 6 << 20}, Snapshot{SendBuffer: 425984, ReceiveBuffer: 6 << 20}, ceilings{0, 6 << 20}},
		{ceilings{}, Snapshot{}, ceilings{}}, {ceilings{4 << 20, 6 << 20}, Snapshot{}, ceilings{}},
	} {
		if got := c.limits.reached(&c.socket); got != c.want {
			t.Errorf("%+v: %+v", c, got)
		}
	}
}
