package datagram

import (
	"bytes"
	"testing"
	"time"
)

func TestHeader_RoundTrip(t *testing.T) {
	want := []byte{0, 0, 0, 7, 0, 0, 0, 9, 0, 0, 0, 3}
	h := Header{7*time.Second + 9*time.Microsecond, 3}
	b := make([]byte, 12)
	if h.Put(b, false); !bytes.Equal(b, want) {
		t.Errorf("% x, want % x", b, want)
	}
	if got, ok := ReadHeader(b, false); got != h || !ok {
		t.Errorf("%+v", got)
	}
	h.Sequence = 1 << 40
	b = make([]byte, 16)
	h.Put(b, true)
	if got, ok := ReadHeader(b, true); got != h || !ok {
		t.Errorf("%+v", got)
	}
	if _, ok := ReadHeader(b[:11], false); ok {
		t.Error("eleven bytes were a header")
	}
}

func TestArrivals(t *testing.T) {
	for _, c := range []struct {
		name                        string
		order                       []uint64
		lost, reordered, duplicates int64
	}{
		{"in order", []uint64{1, 2, 3, 4}, 0, 0, 0},
		{"a gap", []uint64{1, 2, 5, 6}, 2, 0, 0},
		{"a late one", []uint64{1, 3, 2, 4}, 0, 1, 0},
		{"one twice", []uint64{1, 2, 2, 3}, 0, 0, 1},
		{"the first lost", []uint64{3, 4}, 2, 0, 0},
		{"late and then twice", []uint64{1, 4, 2, 2, 5}, 1, 1, 1},
		{"a jump beyond memory", []uint64{1, 1e6, 2}, 1e6 - 3, 1, 0},
	} {
		var a Arrivals
		for i, n := range c.order {
			a.Add(Header{Sequence: n, Sent: time.Duration(i) * time.Millisecond}, 100, time.Duration(i+5)*time.Millisecond)
		}
		if a.Lost != c.lost || a.Reordered != c.reordered || a.Duplicates != c.duplicates || a.Jitter != 0 {
			t.Errorf("%s: lost %d, reordered %d, duplicates %d, jitter %v", c.name, a.Lost, a.Reordered, a.Duplicates, a.Jitter)
		}
	}
	var a Arrivals
	a.Add(Header{Sequence: 1}, 1, 0)
	if above := a.Add(Header{Sequence: 2}, 1, 16*time.Millisecond); above != 16*time.Millisecond ||
		a.Jitter != time.Millisecond {
		t.Errorf("delay %v above the least, jitter %v", above, a.Jitter)
	}
}

func FuzzDatagram(f *testing.F) {
	f.Add(bytes.Repeat([]byte{1}, 12), false)
	f.Add(bytes.Repeat([]byte{0xff}, 16), true)
	f.Fuzz(func(t *testing.T, b []byte, wide bool) {
		var a Arrivals
		if h, ok := ReadHeader(b, wide); ok {
			a.Add(h, len(b), time.Second)
			h.Sequence /= 2
			a.Add(h, len(b), time.Second)
			if a.Lost < 0 || a.Datagrams != 2 {
				t.Errorf("%+v", a)
			}
		}
	})
}

func BenchmarkArrivals(b *testing.B) {
	var a Arrivals
	b.ReportAllocs()
	for n := range b.N {
		a.Add(Header{time.Duration(n), uint64(n + 1)}, 1448, time.Duration(n+50))
	}
}

// A sender with coarse timers keeps its rate. After a pause it catches up at no more than twice its rate.
func TestPacer(t *testing.T) {
	const per = 700 * time.Microsecond
	p := pacer{perDatagram: per}
	var sent int
	for now := time.Duration(0); now < time.Second; now += 1100 * time.Microsecond {
		for {
			n, wait := p.due(now, 44)
			sent += n
			if wait > 0 {
				break
			}
		}
	}
	if want := int(time.Second / per); sent < want-3 || sent > want+3 {
		t.Errorf("%d datagrams in a second, want %d", sent, want)
	}
	if n, _ := p.due(1050*time.Millisecond, 1000); n == 0 || n > 4 {
		t.Errorf("%d at once after a break of 50 ms", n)
	}
	if n, wait := p.due(1050*time.Millisecond, 1000); n != 0 || wait <= 0 {
		t.Errorf("%d more at once", n)
	}
}

// A sender with bursts sends whole bursts and keeps its rate.
func TestPacer_Bursts(t *testing.T) {
	const per, burst = 700 * time.Microsecond, 10
	p := pacer{perDatagram: per, burst: burst}
	var sent int
	for now := time.Duration(0); now < time.Second; now += 1100 * time.Microsecond {
		at := 0
		for {
			n, wait := p.due(now, 4)
			at += n
			if wait > 0 {
				break
			}
		}
		sent += at
		if at%burst != 0 {
			t.Fatalf("%d datagrams at once", at)
		}
	}
	if want := int(time.Second / per); sent < want-burst || sent > want+burst {
		t.Errorf("%d datagrams in a second, want %d", sent, want)
	}
}
