package iperf3

import "testing"

func TestAmount(t *testing.T) {
	for _, tt := range []struct {
		v      float64
		format byte
		want   string
	}{
		{0, 'A', "0.00 Byte"}, {1047728, 'A', "1023 KByte"}, {314572800, 'A', " 300 MByte"}, {1.25 * (1 << 30), 'A',
			"1.25 GByte"},
		{5.03e9, 'a', "5.03 Gbit"}, {10.0e9, 'a', "10.0 Gbit"}, {999.4e6, 'a', " 999 Mbit"}, {9.994e6, 'a', "9.99 Mbit"},
		{9.996e6, 'a', "10.0 Mbit"},
		{94.5e6, 'm', "94.5 Mbit"}, {94.5e6, 'k', "94500 Kbit"}, {8 * (1 << 20), 'M', "1.00 MByte"}, {5e9, 'g', "5.00 Gbit"},
		{5e11, 't', "0.50 Tbit"},
	} {
		if got := Amount(tt.v, tt.format); got != tt.want {
			t.Errorf("%g as %c: %q, want %q", tt.v, tt.format, got, tt.want)
		}
	}
}
