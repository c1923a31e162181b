package datagram

import (
	"net"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/socket"
	"github.com/fullpipe-net/fullpipe/internal/testenv/must"
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
		var a statusTracker
		a.add(s)
		a.add(status{})
	})
}

func TestStatusTracker(t *testing.T) {
	var a statusTracker
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

// TestFollow_IgnoresOtherSenders checks that a sender's rate follows only its receiver's statuses.
func TestFollow_IgnoresOtherSenders(t *testing.T) {
	listen := func() *net.UDPConn {
		c := must.Get(net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)}))(t)
		t.Cleanup(func() { c.Close() })
		return c
	}
	receiver, otherSender := listen(), listen()
	f := must.Get(socket.DialFlow(t.Context(), receiver.LocalAddr().String(), socket.FlowOptions{}))(t)
	defer f.Close()
	var s rateSearch
	start := int64(s.load.Bps())
	s.bps.Store(start)
	var following sync.WaitGroup
	following.Go(func() { s.follow(&Flow{Socket: f}) })
	now := status{elapsed: time.Millisecond, bytes: 1, highest: 1}
	send := func(from *net.UDPConn) {
		now.elapsed += 10 * time.Millisecond
		now.bytes += 1000
		now.highest++
		var b [statusSize]byte
		now.put(b[:])
		must.Get(from.WriteToUDPAddrPort(b[:], f.Local()))(t)
	}
	until := func(done func(bps int64) bool) {
		for !done(s.bps.Load()) {
			runtime.Gosched()
		}
	}
	for range 10 {
		send(otherSender)
	}
	before := start
	for range 10 { // one at a time: each raises the rate
		send(receiver)
		until(func(bps int64) bool { return bps > before })
		before = s.bps.Load()
	}
	now.lost += 1000
	send(receiver)
	until(func(bps int64) bool { return bps < before })
	f.SetDeadline(time.Unix(1, 0))
	following.Wait()
	if s.account.n != 11 {
		t.Errorf("%d statuses were taken, want the receiver's 11", s.account.n)
	}
}
