package datagram

import (
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

func FuzzReadStatus(f *testing.F) {
	var b [statusSize]byte
	(&status{elapsed: time.Second, bytes: 5, highest: 3, lost: 1, reordered: 1, delay: time.Millisecond}).put(b[:])
	f.Add(b[:])
	f.Add([]byte("FPS1"))
	f.Fuzz(func(t *testing.T, datagram []byte) {
		s, ok := readStatus(datagram)
		if !ok {
			return
		}
		var again [statusSize]byte
		if s.put(again[:]); string(again[:]) != string(datagram) {
			t.Fatalf("%x was read as %+v", datagram, s)
		}
		var a account
		a.add(s)
		a.add(status{})
	})
}

func TestAccountOfStatuses(t *testing.T) {
	var a account
	for i := range 41 {
		n := int64(i)
		f, news := a.add(status{elapsed: time.Duration(i+1) * 50 * time.Millisecond, bytes: n * 1000, highest: n * 2,
			lost: n, delay: 10 * time.Millisecond})
		if i > 0 && (!news || f.SequenceErrors != 1 || f.Delay != 10*time.Millisecond) {
			t.Fatalf("%d: %+v, %v", i, f, news)
		}
	}
	if _, news := a.add(status{elapsed: time.Second, bytes: 1, highest: 1}); news {
		t.Error("a status that came late was taken")
	}
	second := transfer.DatagramSecond{Duration: time.Second, Sent: 40, Lost: 20, Bytes: 20000,
		Delay: 10 * time.Millisecond}
	if len(a.seconds) != 2 || a.seconds[1] != second {
		t.Errorf("%+v", a.seconds)
	}
}
