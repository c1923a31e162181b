package watch

import "testing"

// TestCeilings_Reached recognises automatic buffers at their ceiling.
func TestCeilings_Reached(t *testing.T) {
	for _, c := range []struct {
		limits ceilings
		socket Told
		want   ceilings
	}{
		{ceilings{4 << 20, 6 << 20}, Told{SendBuffer: 4 << 20, ReceiveBuffer: 131072}, ceilings{4 << 20, 0}},
		{ceilings{4 << 20, 6 << 20}, Told{SendBuffer: 425984, ReceiveBuffer: 6 << 20}, ceilings{0, 6 << 20}},
		{ceilings{}, Told{}, ceilings{}}, {ceilings{4 << 20, 6 << 20}, Told{}, ceilings{}},
	} {
		if got := c.limits.reached(&c.socket); got != c.want {
			t.Errorf("%+v: %+v", c, got)
		}
	}
}
