package flow

import (
	"fmt"
	"math"
	"testing"
	"time"
)

const ms = int64(time.Millisecond)

// tape writes what a tap would see of one connection: a client that sends to a server.
type tape struct {
	table *Table
	isn   uint32
}

var clientEnd, serverEnd = Endpoint4(0x0a000001, 40000), Endpoint4(0x0a000002, 5201)

func newTape(cfg Config) *tape { return &tape{table: NewTable(cfg), isn: 1000} }

func (x *tape) open(rtt int64, scale uint8) {
	x.table.Add(&Segment{At: 0, Src: clientEnd, Dst: serverEnd, Seq: x.isn - 1, Flags: SYN, Window: 64240, MSS: 1460,
		Scale:   scale,
		Options: HasMSS | HasScale | HasSACKPermitted})
	x.table.Add(&Segment{At: rtt, Src: serverEnd, Dst: clientEnd, Seq: 4999, Ack: x.isn, Flags: SYN | ACK, Window: 65160,
		MSS:   1460,
		Scale: scale, Options: HasMSS | HasScale | HasSACKPermitted})
	x.table.Add(&Segment{At: rtt, Src: clientEnd, Dst: serverEnd, Seq: x.isn, Ack: 5000, Flags: ACK, Window: 500})
}

func (x *tape) data(at int64, pos, length uint32) {
	x.table.Add(&Segment{At: at, Src: clientEnd, Dst: serverEnd, Seq: x.isn + pos, Ack: 5000, Flags: ACK, Window: 500,
		Payload: length})
}

func (x *tape) ack(at int64, pos uint32, window uint16, sack ...uint32) {
	s := Segment{At: at, Src: serverEnd, Dst: clientEnd, Seq: 5000, Ack: x.isn + pos, Flags: ACK, Window: window}
	for i := 0; i+1 < len(sack); i += 2 {
		s.SACK[s.SACKs] = [2]uint32{x.isn + sack[i], x.isn + sack[i+1]}
		s.SACKs++
	}
	x.table.Add(&s)
}

func (x *tape) direction(t *testing.T) *Direction {
	t.Helper()
	all := x.table.Finish()
	if len(all) != 1 || len(all[0].Directions()) != 1 {
		t.Fatalf("%d connections", len(all))
	}
	return all[0].Directions()[0]
}

// share is a clock's part of the time.
func (d *Direction) share(c Clock) float64 {
	var sum, all int64
	for i := range d.Slices {
		for k, v := range d.Slices[i].Clock {
			all += v
			if Clock(k) == c {
				sum += v
			}
		}
	}
	return float64(sum) / float64(all)
}

func TestFullWindow(t *testing.T) {
	for _, isn := range []uint32{1000, math.MaxUint32 - 20000} { // sequence numbers wrap
		x := newTape(Config{})
		x.isn = isn
		rtt := 40 * ms
		x.open(rtt, 7)
		const window = 64 << 10
		sent := uint32(0)
		for round := range uint32(50) { // a whole window each round trip, acknowledged in pairs
			at := rtt + int64(round)*rtt
			for i := uint32(0); i < 44; i += 2 {
				if round > 0 {
					x.ack(at+int64(i)*1000, (round-1)*44*1448+(i+2)*1448, window>>7)
				}
				x.data(at+int64(i)*1000, sent, 1448)
				x.data(at+int64(i)*1000, sent+1448, 1448)
				sent += 2 * 1448
			}
		}
		d := x.direction(t)
		if got := d.share(Full); got < 0.95 {
			t.Errorf("isn %d: the window was full %.2f of the time", isn, got)
		}
		if d.Bytes != int64(sent) || d.WindowMax != window || d.RTTMin < rtt || d.RTTMin > rtt+ms || d.Retransmitted != 0 {
			t.Errorf("isn %d: %d bytes, window %d, rtt %d, %d retransmitted", isn, d.Bytes, d.WindowMax, d.RTTMin,
				d.Retransmitted)
		}
	}
}

func TestIdleAndClosed(t *testing.T) {
	x := newTape(Config{})
	x.open(10*ms, 0)
	pos := uint32(0)
	for i := range int64(20) { // 1000 bytes every 100 ms, acknowledged after 10
		x.data((20+100*i)*ms, pos, 1000)
		pos += 1000
		x.ack((30+100*i)*ms, pos, 60000)
	}
	for i := range int64(20) { // the receiver reads 3000 bytes every 100 ms, its window near 0
		x.data((2020+100*i)*ms, pos, 3000)
		pos += 3000
		x.ack((2030+100*i)*ms, pos, 0)
		x.ack((2119+100*i)*ms, pos, 3000)
	}
	d := x.direction(t)
	if got := d.share(Idle); math.Abs(got-0.45) > 0.03 {
		t.Errorf("idle %.2f of the time", got)
	}
	if got := d.share(Closed); math.Abs(got-0.5) > 0.05 {
		t.Errorf("closed %.2f of the time", got)
	}
	if d.ZeroWindows != 20 {
		t.Errorf("%d windows of 0", d.ZeroWindows)
	}
}

func TestLossAndRepair(t *testing.T) {
	x := newTape(Config{})
	x.open(50*ms, 7)
	for i := range uint32(20) {
		x.data(50*ms+int64(i)*ms, i*1448, 1448)
	}
	for i := range uint32(15) { // the fifth was lost
		x.ack(100*ms+int64(i)*ms, min(i+1, 4)*1448, 500, 5*1448, max(i+1, 6)*1448)
	}
	x.data(108*ms, 4*1448, 1448)
	x.ack(158*ms, 20*1448, 500)
	d := x.direction(t)
	if d.Retransmitted != 1 || d.LossEvents != 1 || d.Spurious != 0 || d.OutOfOrder != 0 || d.Unseen != 0 {
		t.Errorf("%+v", *d)
	}
	var repair int64
	for _, s := range d.Slices {
		repair += s.Clock[Recovery]
	}
	if repair < 45*ms || repair > 60*ms {
		t.Errorf("repair took %v", time.Duration(repair))
	}
}

func TestDirection_NoLoss(t *testing.T) {
	tests := map[string]struct {
		play func(*tape)
		want Direction
	}{
		"capture loss": {func(x *tape) {
			x.data(60*ms, 0, 1448)
			x.data(61*ms, 2*1448, 1448)
			x.ack(110*ms, 3*1448, 500)
		}, Direction{Unseen: 1448}},
		"acknowledged beyond what was seen": {func(x *tape) {
			x.data(60*ms, 0, 1448)
			x.ack(110*ms, 2*1448, 500)
		}, Direction{Unseen: 1448}},
		"reordering": {func(x *tape) {
			x.data(60*ms, 0, 1448)
			x.data(61*ms, 2*1448, 1448)
			x.data(62*ms, 1448, 1448)
			x.ack(110*ms, 3*1448, 500)
		}, Direction{OutOfOrder: 1}},
		"keep-alive": {func(x *tape) {
			x.data(60*ms, 0, 1448)
			x.ack(110*ms, 1448, 500)
			x.data(10000*ms, 1447, 1)
			x.ack(10050*ms, 1448, 500)
		}, Direction{Probes: 1}},
		"loss before the tap": {func(x *tape) {
			x.data(60*ms, 0, 1448)
			x.data(61*ms, 2*1448, 1448)
			x.data(130*ms, 1448, 1448)
			x.ack(180*ms, 3*1448, 500)
		}, Direction{Retransmitted: 1}},
		"spurious": {func(x *tape) {
			x.data(60*ms, 0, 1448)
			x.ack(110*ms, 1448, 500)
			x.data(111*ms, 0, 1448)
		}, Direction{Retransmitted: 1, Spurious: 1, Repeated: 1448}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			x := newTape(Config{})
			x.open(50*ms, 7)
			test.play(x)
			d := x.direction(t)
			got := Direction{Retransmitted: d.Retransmitted, OutOfOrder: d.OutOfOrder, Unseen: d.Unseen, Probes: d.Probes,
				Spurious: d.Spurious, Repeated: d.Repeated}
			if got.Retransmitted != test.want.Retransmitted || got.OutOfOrder != test.want.OutOfOrder ||
				got.Unseen != test.want.Unseen ||
				got.Probes != test.want.Probes || got.Spurious != test.want.Spurious || got.Repeated != test.want.Repeated {
				t.Errorf("retransmitted %d, out of order %d, unseen %d, probes %d, spurious %d, repeated %d", got.Retransmitted,
					got.OutOfOrder, got.Unseen, got.Probes, got.Spurious, got.Repeated)
			}
		})
	}
}

func TestPortsAreUsedAgain(t *testing.T) {
	x := newTape(Config{})
	for i := range 3 {
		x.isn = uint32(1000 + 100000*i)
		x.open(int64(i)*1000*ms+10*ms, 7)
		x.data(int64(i)*1000*ms+20*ms, 0, 1000)
		x.ack(int64(i)*1000*ms+30*ms, 1000, 500)
	}
	if got := len(x.table.Finish()); got != 3 {
		t.Errorf("%d connections", got)
	}
}

func TestCopiesOfASecondInterface(t *testing.T) {
	x := newTape(Config{})
	x.open(10*ms, 7)
	for i := range uint32(10) {
		s := Segment{At: int64(20+i) * ms, Src: clientEnd, Dst: serverEnd, Seq: x.isn + i*1000, Ack: 5000, Flags: ACK,
			Window: 500, Payload: 1000}
		x.table.Add(&s)
		s.Interface, s.At = 1, s.At+1000
		x.table.Add(&s)
	}
	d := x.direction(t)
	if d.Segments != 10 || d.Retransmitted != 0 || x.table.Duplicates != 10 {
		t.Errorf("%d segments, %d retransmitted, %d duplicates", d.Segments, d.Retransmitted, x.table.Duplicates)
	}
}

func TestScaleIsInferred(t *testing.T) {
	x := newTape(Config{})
	x.ack(0, 0, 1000) // no handshake: 1000 << 7 is what the window really is
	for i := range uint32(80) {
		x.data(int64(i+1)*ms, i*1448, 1448)
	}
	x.ack(100*ms, 80*1448, 1000)
	d := x.direction(t)
	if d.ScaleKnown || d.Scale != 7 {
		t.Errorf("scale %d, known %v; 115840 bytes do not fit 1000 << 6", d.Scale, d.ScaleKnown)
	}
}

func TestBounds(t *testing.T) {
	x := newTape(Config{Slices: 16, Points: 64})
	x.open(1*ms, 7)
	for i := range uint32(20000) {
		x.data(int64(i+2)*ms, i*1000, 1000)
		x.ack(int64(i+3)*ms, (i+1)*1000, 500)
	}
	d := x.direction(t)
	if len(d.Slices) > 16 || len(d.Graph.Data.Points) > 64 || len(d.Graph.RTT.Points) > 64 {
		t.Errorf("%d slices, %d points", len(d.Slices), len(d.Graph.Data.Points))
	}
	var sum int64
	for _, s := range d.Slices {
		for _, v := range s.Clock {
			sum += v
		}
	}
	if got := d.Last - d.First; sum != got {
		t.Errorf("the clocks ran %v of %v", time.Duration(sum), time.Duration(got))
	}
}

// FuzzTable throws arbitrary segments of a few connections at a table.
func FuzzTable(f *testing.F) {
	f.Add([]byte{2, 0, 0, 0, 0, 0, 0, 0, 0, 18, 1, 0, 0, 0, 0, 0, 0, 0, 16, 0, 5, 1, 1, 1, 1, 1, 1})
	f.Fuzz(func(t *testing.T, data []byte) {
		table := NewTable(Config{Slices: 8, Points: 16, Connections: 8})
		at := int64(0)
		for ; len(data) >= 9; data = data[9:] {
			s := Segment{Src: Endpoint4(1, uint16(data[1]&3)), Dst: Endpoint4(2, 5), Flags: Flags(data[0]),
				Seq: uint32(data[2])<<24 | uint32(data[3])*700,
				Ack: uint32(data[4])<<24 | uint32(data[5])*700, Window: uint16(data[6]) << 8, Payload: uint32(data[7]) * 100,
				TSVal: uint32(data[8]), TSEcr: uint32(data[2])}
			if data[1]&4 != 0 {
				s.Src, s.Dst = s.Dst, s.Src
			}
			s.Options, s.Scale, s.SACKs = Options(data[1]>>3), data[8]&15, data[1]>>6
			s.SACK = [4][2]uint32{{s.Ack + 700, s.Ack + 1400}, {s.Seq, s.Ack}, {s.Ack, s.Seq}}
			if s.Scale > 14 {
				s.Scale = 14
			}
			at += int64(data[8]) * 100_000
			s.At = at - int64(data[7]&1)*300_000
			table.Add(&s)
		}
		for _, c := range table.Finish() {
			for _, d := range c.Directions() {
				var sum int64
				for _, s := range d.Slices {
					for _, v := range s.Clock {
						if v < 0 {
							t.Fatalf("a clock ran backwards: %+v", s.Clock)
						}
						sum += v
					}
				}
				if len(d.Slices) > 8 || sum > d.Last-d.First || d.Bytes < 0 || d.MaxOut < 0 {
					t.Fatalf("%d slices, clocks %d of %d, %d bytes", len(d.Slices), sum, d.Last-d.First, d.Bytes)
				}
			}
		}
	})
}

// BenchmarkTable follows bulk transfers, two segments and an acknowledgement of each by
// turns.
func BenchmarkTable(b *testing.B) {
	for _, connections := range []int{1, 1000} {
		b.Run(fmt.Sprint(connections), func(b *testing.B) {
			table := NewTable(Config{})
			pos, at := uint32(0), int64(0)
			add := func(c int, s Segment) {
				s.At, s.Flags, s.Window, s.Options = at, ACK, 500, HasTimestamps
				s.TSVal, s.TSEcr = uint32(at/1e6), uint32(at/1e6)
				at += 10_000
				if s.Payload > 0 {
					s.Src.Port = uint16(c)
				} else {
					s.Dst.Port = uint16(c)
				}
				table.Add(&s)
			}
			b.ReportAllocs()
			for n := 0; b.Loop(); n++ {
				c := n / 3 % connections
				switch n % 3 {
				case 0, 1:
					add(c, Segment{Src: clientEnd, Dst: serverEnd, Seq: pos + uint32(n%3)*1448, Ack: 5000, Payload: 1448})
				case 2:
					add(c, Segment{Src: serverEnd, Dst: clientEnd, Seq: 5000, Ack: pos - 20*1448})
					if c == connections-1 {
						pos += 2 * 1448
					}
				}
			}
		})
	}
}
