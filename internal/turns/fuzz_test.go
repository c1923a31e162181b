package turns

import "testing"

// FuzzTracker reads 12 bytes a packet. No stage may be negative, and all add up to the duration.
func FuzzTracker(f *testing.F) {
	w, _ := cell{"lost-middle", 6 * ms, 20e6, 9000, 0.5, 3}.play()
	var seed []byte
	for _, p := range w.packets[:60] {
		flags := byte(p.Flags)
		if p.FromClient {
			flags |= 0x20
		}
		seed = append(seed, flags, byte(p.Seq), byte(p.Seq>>8), byte(p.Ack), byte(p.Ack>>8), byte(p.Payload),
			byte(p.Payload>>8), byte(p.At>>16), byte(p.SACK), byte(p.IPID), byte(p.TSVal), byte(p.Window>>8))
	}
	f.Add(seed)
	f.Fuzz(func(t *testing.T, data []byte) {
		tracker := &Tracker{Summary: Summary{MaxKept: 10}}
		var at int64
		for n := int64(1); len(data) >= 12; n++ {
			d := data[:12]
			data = data[12:]
			at += int64(d[7]) << 16
			p := Packet{At: at, Number: n, FromClient: d[0]&0x20 != 0, Flags: Flags(d[0]) &^ 0x20,
				Seq: uint32(d[1])<<4 | uint32(d[2])<<12, Ack: uint32(d[3])<<4 | uint32(d[4])<<12,
				Payload: uint32(d[5]) | uint32(d[6])<<8, SACK: d[8] & 3, DSACK: d[8]&4 != 0, IPID: uint16(d[9]),
				TSVal: uint32(d[10]) << 4, Window: int64(d[11]) << 8, MSS: int64(d[11]) << 3}
			tracker.Add(&p)
		}
		tracker.Finish()
		for _, one := range ProfileOf(&tracker.Summary).Longest {
			if off := one.Duration - one.Time.Sum(); one.Duration < 0 || max(off, -off) > one.Duration/1e6+64 {
				t.Fatalf("%+v", one)
			}
			for s := range one.Time {
				for c, d := range one.Time[s] {
					if d < 0 {
						t.Fatalf("%v %v: %d ns", Stage(s), Cause(c), d)
					}
				}
			}
		}
		for c := range tracker.Stalled {
			for _, sum := range tracker.Stalled[c] {
				if sum.Count < 0 || sum.Time < 0 {
					t.Fatalf("%v: %+v", Cause(c), sum)
				}
			}
		}
		if len(tracker.kept) > 11 || len(tracker.slowest) > maxSlowest {
			t.Fatal("too much is kept")
		}
	})
}
