package record

import "testing"

// TestPath_KeyNeverChanges compares keys with those in existing histories.
func TestPath_KeyNeverChanges(t *testing.T) {
	rate := func(bps float64) *float64 { return &bps }
	for _, tt := range []struct {
		options   MeasureOptions
		text, key string
	}{
		{MeasureOptions{}, "send-buffer=0 B receive-buffer=0 B write-size=0 B pacing=0 bit/s ", "377q6c5qafqadiqr"},
		{MeasureOptions{SendBuffer: 65536, ReceiveBuffer: 100_000, WriteSize: 9999, PacingBps: 1.5e9, Bind: "eth0"},
			"send-buffer=64 KiB receive-buffer=97.7 KiB write-size=9999 B pacing=1.5 Gbit/s bind=eth0 ", "ltul6pls13aphkcm"},
		{MeasureOptions{SendBuffer: 1 << 20, ReceiveBuffer: 1<<20 - 1, WriteSize: 10_000, Bidir: true},
			"send-buffer=1 MiB receive-buffer=1 MiB write-size=9.77 KiB pacing=0 bit/s bidir=true ", "20pk4ia9o6avcrnf"},
		{MeasureOptions{Capacity: true, RateBps: rate(0)},
			"send-buffer=0 B receive-buffer=0 B write-size=0 B pacing=0 bit/s capacity=true rate=0 bit/s ", "s8vjel7flsfghrlm"},
		{MeasureOptions{PacingBps: 0.5, RateBps: rate(100e6)},
			"send-buffer=0 B receive-buffer=0 B write-size=0 B pacing=0.5 bit/s rate=100 Mbit/s ", "utvd5q5pjrhnchgi"},
		{MeasureOptions{Bind: "eth0", Window: 65536, DSCP: 46, NoDelay: true, Exchange: true, WriteRateBps: 20e6,
			ReadRateBps: 1.5e6, Datagram: 1200}, "send-buffer=0 B receive-buffer=0 B write-size=0 B pacing=0 bit/s bind=eth0 " +
			"window=64 KiB dscp=46 no-delay=true exchange=true write-rate=20 Mbit/s read-rate=1.5 Mbit/s datagram=1200 B ",
			"6epd1mjh7l16rqfg"},
	} {
		if text := tt.options.String(); text != tt.text {
			t.Errorf("%+v: %q, not %q", tt.options, text, tt.text)
		}
		p := SeriesID{HostID: "h", Far: "ssh://b", Kind: "measure ssh", Protocol: "tcp", IPVersion: 6, Streams: 2,
			Congestion: "bbr", MSS: 1200, Others: tt.options.String()}
		if key := p.Key(); key != tt.key {
			t.Errorf("%+v: key %s, not %s", p, key, tt.key)
		}
	}
}
