package flow

import (
	"cmp"
	"slices"
	"testing"
)

// A server that starts over sends two SYN-ACKs, each with other numbers.
func TestTwoSYNACKs(t *testing.T) {
	x := newTape(Config{})
	synAck := func(at int64, isn uint32) {
		x.table.Add(&Segment{At: at, Src: serverEnd, Dst: clientEnd, Seq: isn, Ack: x.isn, Flags: SYN | ACK, Window: 65160,
			MSS:     1460,
			Options: HasMSS})
	}
	x.table.Add(&Segment{At: 0, Src: clientEnd, Dst: serverEnd, Seq: x.isn - 1, Flags: SYN, Window: 64240, MSS: 1460,
		Options: HasMSS})
	synAck(10*ms, 1_200_000_000)
	synAck(11*ms, 4999)
	for i := range uint32(6) {
		at := int64(12+10*i) * ms
		x.table.Add(&Segment{At: at, Src: clientEnd, Dst: serverEnd, Seq: x.isn, Ack: 5000 + i*1000, Flags: ACK,
			Window: 64240})
		x.table.Add(&Segment{At: at + 9*ms, Src: serverEnd, Dst: clientEnd, Seq: 5000 + i*1000, Ack: x.isn, Flags: ACK,
			Window: 65160, Payload: 1000})
	}
	if d := x.direction(t); d.Bytes != 6000 || d.Unseen != 0 || d.Retransmitted != 0 {
		t.Errorf("%d bytes, %d unseen, %d retransmitted", d.Bytes, d.Unseen, d.Retransmitted)
	}
}

// Data may come with the SYN, and the server may take it or not.
func TestFastOpen(t *testing.T) {
	for _, taken := range []uint32{0, 500} {
		x := newTape(Config{})
		x.table.Add(&Segment{At: 0, Src: clientEnd, Dst: serverEnd, Seq: x.isn - 1, Flags: SYN, Window: 64240, MSS: 1460,
			Options: HasMSS, Payload: 500})
		x.table.Add(&Segment{At: 10 * ms, Src: serverEnd, Dst: clientEnd, Seq: 4999, Ack: x.isn + taken, Flags: SYN | ACK,
			Window: 65160, MSS: 1460, Options: HasMSS})
		for pos := taken; pos < 3000; pos += 500 {
			x.data(11*ms+int64(pos)*1000, pos, 500)
			x.ack(21*ms+int64(pos)*1000, pos+500, 65000)
		}
		if d := x.direction(t); d.Bytes != 3000 || d.Unseen != 0 || d.Retransmitted != 0 {
			t.Errorf("%d taken: %d bytes, %d unseen, %d retransmitted", taken, d.Bytes, d.Unseen, d.Retransmitted)
		}
	}
}

// IPv6, and IPv4 of some hosts, has no number by which a copy on one interface is recognised.
func TestCopiesOnOneInterface(t *testing.T) {
	x := newTape(Config{})
	x.open(10*ms, 7)
	for i := range uint32(20) {
		for copies := range int64(2) {
			x.data(int64(20+10*i)*ms+copies*30_000, i*1000, 1000)
		}
		for copies := range int64(2) {
			x.ack(int64(25+10*i)*ms+copies*30_000, (i+1)*1000, 500)
		}
	}
	x.data(400*ms, 20_000, 1000)
	x.data(403*ms, 20_000, 1000) // retransmitted
	d := x.direction(t)
	if d.Segments != 22 || d.Retransmitted != 1 || d.Acks != 20 || x.table.Duplicates != 40 {
		t.Errorf("%d segments, %d retransmitted, %d acknowledgements, %d duplicates", d.Segments, d.Retransmitted, d.Acks,
			x.table.Duplicates)
	}
}

// One round trip that is far too short is a stamp that is wrong.
func TestLeastRoundTripIsSupported(t *testing.T) {
	x := newTape(Config{})
	for i := range uint32(200) {
		at, rtt := int64(i)*50*ms, 45*ms+int64(i%7)*100_000
		if i == 120 {
			rtt = 29 * ms
		}
		x.data(at, i*1000, 1000)
		x.ack(at+rtt, (i+1)*1000, 5000)
	}
	if d := x.direction(t); d.RTTMin < 45*ms || d.RTTMin > 46*ms {
		t.Errorf("a round trip of %d ns at the least", d.RTTMin)
	}
}

// The answer to a SYN-ACK may be delayed: the loop through the client is not that long.
func TestDelayedAnswerToTheSYNACK(t *testing.T) {
	open := func(x *tape) {
		x.table.Add(&Segment{At: 0, Src: clientEnd, Dst: serverEnd, Seq: x.isn - 1, Flags: SYN, Window: 64240, MSS: 1460,
			Options: HasMSS | HasScale})
		x.table.Add(&Segment{At: 1500_000, Src: serverEnd, Dst: clientEnd, Seq: 4999, Ack: x.isn, Flags: SYN | ACK,
			Window: 65000, MSS: 1460, Options: HasMSS | HasScale})
		x.table.Add(&Segment{At: 52 * ms, Src: clientEnd, Dst: serverEnd, Seq: x.isn, Ack: 5000, Flags: ACK, Window: 64240})
	}
	for name, play := range map[string]func(x *tape){
		"a congestion window that opens": func(x *tape) {
			pos, acked := uint32(0), uint32(0)
			for round := range uint32(3) { // each acknowledgement lets two segments out; the window is not filled
				at := 60*ms + int64(round)*1600_000
				for i := range 10 << round {
					if i%2 == 0 && round > 0 {
						acked += 1460
						x.ack(at+int64(i)*1000, acked, 65000)
					}
					x.data(at+int64(i)*1000+500, pos, 1460)
					pos += 1460
				}
			}
			x.ack(60*ms+4*1600_000, pos, 65000)
		},
		"a window that was full": func(x *tape) {
			pos := uint32(0)
			for round := range int64(20) {
				at := 60*ms + round*1600_000
				for range 44 {
					x.data(at, pos, 1460)
					pos += 1460
				}
				x.ack(at+1500_000, pos, 65000)
			}
		},
		"answers": func(x *tape) {
			for i := range uint32(20) {
				at := int64(60+10*i) * ms
				x.data(at, i*200, 200)
				x.table.Add(&Segment{At: at + 1500_000, Src: serverEnd, Dst: clientEnd, Seq: 5000 + i*300, Ack: x.isn + (i+1)*200,
					Flags: ACK, Window: 65000, Payload: 300})
				x.table.Add(&Segment{At: at + 1600_000, Src: clientEnd, Dst: serverEnd, Seq: x.isn + (i+1)*200, Ack: 5000 +
					(i+1)*300, Flags: ACK, Window: 64240})
			}
		},
	} {
		x := newTape(Config{})
		open(x)
		play(x)
		d := x.table.Finish()[0].Directions()[0]
		if d.RTTMin > 2*ms || d.LoopMin > d.RTTMin/4 {
			t.Errorf("%s: round trip %d ns, %d of it before the tap", name, d.RTTMin, d.LoopMin)
		}
	}
}

// stamped plays a bulk transfer of a window each 20 ms at a tap near the sender. stamp makes the timestamps of the
// receiver from the time, and echo those that the sender echoes. loop is the time from the tap through the sender.
func stamped(rounds int, synAck uint32, stamp, echo func(at int64) uint32, loop int64) *Direction {
	table := NewTable(Config{})
	opt := HasMSS | HasScale | HasTimestamps
	table.Add(&Segment{At: 0, Src: clientEnd, Dst: serverEnd, Seq: 999, Flags: SYN, Window: 64240, MSS: 1460, Options: opt,
		TSVal: 5})
	table.Add(&Segment{At: 20 * ms, Src: serverEnd, Dst: clientEnd, Seq: 4999, Ack: 1000, Flags: SYN | ACK, Window: 60000,
		MSS: 1460, Options: opt, TSVal: synAck, TSEcr: 5})
	table.Add(&Segment{At: 20*ms + loop, Src: clientEnd, Dst: serverEnd, Seq: 1000, Ack: 5000, Flags: ACK, Window: 500,
		Options: HasTimestamps, TSVal: 25, TSEcr: synAck})
	pos := uint32(0)
	for round := range int64(rounds) {
		for i := range int64(20) {
			at := (21+20*round)*ms + i*ms + loop
			if round > 0 {
				table.Add(&Segment{At: at, Src: serverEnd, Dst: clientEnd, Seq: 5000, Ack: 1000 + pos - uint32(19-loop/ms)*1448,
					Flags: ACK, Window: 60000, Options: HasTimestamps,
					TSVal: stamp(at), TSEcr: uint32(at/ms) - 20})
			}
			table.Add(&Segment{At: at + 50_000, Src: clientEnd, Dst: serverEnd, Seq: 1000 + pos, Ack: 5000, Flags: ACK,
				Window: 500, Payload: 1448,
				Options: HasTimestamps, TSVal: uint32(at / ms), TSEcr: echo(at)})
			pos += 1448
		}
	}
	return table.Finish()[0].Directions()[0]
}

// No queue of acknowledgements is read from the way a clock counts.
func TestTimestampsThatTickOddly(t *testing.T) {
	millis := func(at int64) uint32 { return uint32(at / ms) }
	for name, stamp := range map[string]func(at int64) uint32{
		"milliseconds":                     millis,
		"4 ms, as with HZ=250":             func(at int64) uint32 { return uint32(at / (4 * ms)) },
		"milliseconds, 4 at once":          func(at int64) uint32 { return uint32(at / (4 * ms) * 4) },
		"milliseconds, 15 or 16 at a time": func(at int64) uint32 { return uint32(at * 64 / 1e9 * 1000 / 64) },
		"10 ms":                            func(at int64) uint32 { return uint32(at / (10 * ms)) },
		"does not change":                  func(int64) uint32 { return 77 },
	} {
		for _, synAck := range []uint32{0, stamp(20 * ms), 1 << 31} {
			for _, rounds := range []int{20, 400} {
				d := stamped(rounds, synAck, stamp, stamp, 0)
				var back, backs int64
				for _, s := range d.Slices {
					back, backs = back+s.BackSum, backs+int64(s.Backs)
				}
				if backs > 0 && back/backs > 3*ms {
					t.Errorf("%s, SYN-ACK %d, %d rounds: acknowledgements took %d ns too long", name, synAck, rounds, back/backs)
				}
				if d.RTTMin < 19*ms || d.RTTMin > 22*ms {
					t.Errorf("%s, SYN-ACK %d: a round trip of %d ns", name, synAck, d.RTTMin)
				}
			}
		}
	}
}

// A sender whose echoes do not change had the acknowledgements all the same.
func TestEchoesThatStandStill(t *testing.T) {
	millis := func(at int64) uint32 { return uint32(at / ms) }
	honest := stamped(200, 20, millis, func(at int64) uint32 { return millis(at - 10*ms) }, 10*ms)
	stuck := stamped(200, 20, millis, func(int64) uint32 { return 20 }, 10*ms)
	late := func(d *Direction) int64 { return d.Slices[len(d.Slices)/2].OutMax }
	if late(stuck) > late(honest)+5*1448 {
		t.Errorf("%d bytes outstanding, %d with honest echoes", late(stuck), late(honest))
	}
}

// A burst is captured at two hops, so that many segments lie between each and its copy.
func TestCopiesOfABurst(t *testing.T) {
	for _, burst := range []uint32{300, 3000} {
		x := newTape(Config{})
		x.open(200*ms, 7)
		var all []Segment
		for round := range int64(3) {
			for i := range burst {
				s := Segment{At: (300+200*round)*ms + int64(i)*5000, Src: clientEnd, Dst: serverEnd, TTL: 64, IPID: uint16(i),
					Seq: x.isn + (uint32(round)*burst+i)*1000, Ack: 5000, Flags: ACK, Window: 500, Payload: 1000}
				all = append(all, s)
				s.At, s.TTL = s.At+2*ms, 63
				all = append(all, s)
			}
		}
		slices.SortStableFunc(all, func(a, b Segment) int { return cmp.Compare(a.At, b.At) })
		for i := range all {
			x.table.Add(&all[i])
		}
		// Until the first copy comes, nothing shows that there will be any.
		first := int64(400)
		if d := x.direction(t); d.Segments < 3*int64(burst) || d.Retransmitted > first || d.LossEvents > 1 {
			t.Errorf("%d segments, %d retransmitted, %d losses, %d duplicates", d.Segments, d.Retransmitted, d.LossEvents,
				x.table.Duplicates)
		}
	}
}

// A clock that is set forward, at a tap at the receiver, is no queue between the sender and the tap: the time from an
// acknowledgement to the data that echoes it does not change.
func TestClockSetForwardALittle(t *testing.T) {
	for _, by := range []int64{0, 30 * ms, 104 * ms, 190 * ms} {
		table := NewTable(Config{})
		opt := HasMSS | HasScale | HasTimestamps
		add := func(at int64, s Segment) {
			if s.At = at; at > 2000*ms {
				s.At += by
			}
			table.Add(&s)
		}
		add(0, Segment{Src: clientEnd, Dst: serverEnd, Seq: 999, Flags: SYN, Window: 64240, MSS: 1460, Options: opt,
			TSVal: 100})
		add(50_000, Segment{Src: serverEnd, Dst: clientEnd, Seq: 4999, Ack: 1000, Flags: SYN | ACK, Window: 60000,
			MSS: 1460, Options: opt, TSVal: 1000, TSEcr: 100})
		for i := range uint32(4000) {
			at := int64(10+i) * ms
			add(at, Segment{Src: clientEnd, Dst: serverEnd, Seq: 1000 + i*1448, Ack: 5000, Flags: ACK, Window: 500,
				Payload: 1448, Options: HasTimestamps, TSVal: 100 + i + 5, TSEcr: 1000 + i})
			add(at+50_000, Segment{Src: serverEnd, Dst: clientEnd, Seq: 5000, Ack: 1000 + (i+1)*1448, Flags: ACK,
				Window: 60000, Options: HasTimestamps, TSVal: 1000 + i + 10, TSEcr: 100 + i + 5})
		}
		d := table.Finish()[0].Directions()[0]
		for i := range d.Slices {
			s := &d.Slices[i]
			if mean := s.RTTSum / int64(max(s.RTTs, 1)); s.Start > 2500*ms+by && s.RTTs > 0 &&
				(mean > 11*ms || mean < 9*ms) {
				t.Fatalf("set by %d ms: a round trip of %d µs, at the least %d", by/ms, mean/1000, d.RTTMin/1000)
			}
		}
	}
}

// A bridge shows the data that a host hands over in one piece once more, cut into segments. A retransmission a round
// trip later is no copy.
func TestCopiesInOtherPieces(t *testing.T) {
	x := newTape(Config{})
	x.open(20*ms, 7)
	pos := uint32(0)
	for i := range int64(50) {
		at := (30 + 20*i) * ms
		x.data(at, pos, 5840)
		for k := range uint32(4) {
			x.data(at+int64(5+3*k)*1000, pos+k*1460, 1460)
		}
		if pos += 5840; i == 30 {
			at += 21 * ms
			x.data(at, pos-5840, 1460)
		}
		x.ack(at+20*ms-1000, pos, 500)
	}
	if d := x.direction(t); d.Retransmitted != 1 || d.Segments != 51 || d.Bytes != int64(pos) ||
		x.table.Duplicates != 200 {
		t.Errorf("%d segments, %d retransmitted, %d bytes, %d duplicates", d.Segments, d.Retransmitted, d.Bytes,
			x.table.Duplicates)
	}
}

// A program that says something each ten seconds is no path of ten seconds.
func TestMessagesByTheProgramsClock(t *testing.T) {
	table := NewTable(Config{})
	for i := range uint32(60) {
		at := int64(i) * 10 * second
		stamp := func(at int64) uint32 { return uint32(at / ms) }
		table.Add(&Segment{At: at, Src: serverEnd, Dst: clientEnd, Seq: 5000 + 700*i, Ack: 1000, Flags: ACK | PSH,
			Window: 500, Payload: 700, Options: HasTimestamps, TSVal: stamp(at), TSEcr: stamp(max(at-10*second, 0) + 212*ms)})
		table.Add(&Segment{At: at + 212*ms, Src: clientEnd, Dst: serverEnd, Seq: 1000, Ack: 5700 + 700*i, Flags: ACK,
			Window: 600, Options: HasTimestamps, TSVal: stamp(at + 212*ms), TSEcr: stamp(at)})
	}
	d := table.Finish()[0].Directions()[0]
	if d.LoopKnown || d.RTTMax > second {
		t.Errorf("a round trip of %d ms, %d of it before the tap", d.RTTMin/ms, d.LoopMin/ms)
	}
}

// A tap may stamp at one moment all packets that it collected for a second.
func TestStampedInBatches(t *testing.T) {
	for name, stampAt := range map[string]func(at int64) int64{
		"each":          func(at int64) int64 { return at },
		"once a second": func(at int64) int64 { return (at/second+1)*second + at%second/1000 },
	} {
		table := NewTable(Config{})
		for i := range uint32(400) {
			for j, one := range []Segment{
				{Src: serverEnd, Dst: clientEnd, Seq: 5000 + 1000*i, Ack: 1000, Flags: ACK, Window: 500, Payload: 1000,
					Options: HasTimestamps},
				{Src: clientEnd, Dst: serverEnd, Seq: 1000, Ack: 6000 + 1000*i, Flags: ACK, Window: 600, Options: HasTimestamps},
			} {
				at := int64(i)*50*ms + int64(j)*20*ms
				one.At, one.TSVal, one.TSEcr = stampAt(at), uint32(at/ms), uint32(max(at-20*ms, 0)/ms)
				table.Add(&one)
			}
		}
		if c := table.Finish()[0]; (c.Grain > 40*ms) != (name != "each") {
			t.Errorf("%s: stamps in steps of %d ms", name, c.Grain/ms)
		}
	}
}

// The last acknowledgement is lost beyond the tap, and the data before it is retransmitted: that time belongs to no
// limiter.
func TestSentAgainAfterTheEnd(t *testing.T) {
	x := newTape(Config{})
	x.open(30*ms, 7)
	for i := range uint32(20) {
		x.data(int64(40+i)*ms, i*1460, 1460)
		x.ack(int64(41+i)*ms, (i+1)*1460, 500)
	}
	x.data(600*ms, 19*1460, 1460)
	x.ack(601*ms, 20*1460, 500)
	if d := x.direction(t); d.Last > 150*ms || d.Unheard != 1 {
		t.Errorf("the data had arrived after %d ms, %d acknowledgements lost", d.Last/ms, d.Unheard)
	}
}
