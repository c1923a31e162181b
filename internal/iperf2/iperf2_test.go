package iperf2

import (
	"context"
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/testenv/must"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// sink runs a server that counts bytes, as an iperf 2 server does. It reports each connection's count and first bytes.
func sink(t *testing.T) (address string, counts chan int64, first chan [4]byte) {
	t.Helper()
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	t.Cleanup(func() { l.Close() })
	counts, first = make(chan int64, 16), make(chan [4]byte, 16)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				var flags [4]byte
				io.ReadFull(c, flags[:])
				first <- flags
				n, _ := io.Copy(io.Discard, c)
				counts <- n
			}()
		}
	}()
	return l.Addr().String(), counts, first
}

func TestPeer_CountsEachByteOnce(t *testing.T) {
	for _, streams := range []int{1, 3} {
		address, counts, first := sink(t)
		p := NewPeer(address)
		const bytes = 3_000_000
		r, err := transfer.Run(t.Context(), p, transfer.Spec{Direction: transfer.Up, Bytes: bytes, Streams: streams}, nil)
		if err != nil {
			t.Fatal(err)
		}
		var total int64
		for range streams {
			if flags := <-first; flags != noFlags {
				t.Errorf("a stream begins with %v, which announces a header", flags)
			}
			total += <-counts
		}
		span, ok := r.Received()
		if !ok || total != bytes || span.Bytes != bytes || r.Far != nil || !r.Complete || len(r.Near.Streams) != streams {
			t.Errorf("%d streams: the server counted %d bytes, the peer %d of %d; far %v, complete %v", streams, total,
				span.Bytes, bytes, r.Far, r.Complete)
		}
	}
}

func TestPeer_Check(t *testing.T) {
	up := transfer.Spec{Direction: transfer.Up, Time: time.Second}
	with := func(change func(*transfer.Spec)) transfer.Test {
		s := up
		change(&s)
		return transfer.TCP(s)
	}
	p := NewPeer("192.0.2.1:5001")
	if err := p.Check(transfer.TCP(up)); err != nil {
		t.Error(err)
	}
	for field, test := range map[string]transfer.Test{
		"Direction":               with(func(s *transfer.Spec) { s.Direction = transfer.Down }),
		"Far.ReceiveBuffer":       with(func(s *transfer.Spec) { s.Far.ReceiveBuffer = 1 << 20 }),
		"Far.MSS":                 with(func(s *transfer.Spec) { s.Far.MSS = 1000 }),
		"Far.Clamp":               with(func(s *transfer.Spec) { s.Far.Clamp = 64 << 10 }),
		"Far.Congestion":          with(func(s *transfer.Spec) { s.Far.Congestion = "bbr" }),
		"Far":                     with(func(s *transfer.Spec) { s.Far.NoDelay = true }),
		"Program.ReadBps":         with(func(s *transfer.Spec) { s.Program.ReadBps = 1e6 }),
		"Program.RequestResponse": with(func(s *transfer.Spec) { s.Program.RequestResponse = true }),
		"Streams":                 with(func(s *transfer.Spec) { s.Streams = 1000 }),
		"Time":                    with(func(s *transfer.Spec) { s.Time = 0 }),
		transfer.FieldUDP:         transfer.UDP(transfer.DatagramSpec{Direction: transfer.Up, Time: time.Second}),
		transfer.FieldLegs: transfer.TCP(up, transfer.Spec{Direction: transfer.Down,
			Time: time.Second}),
	} {
		var no *transfer.Unsupported
		if err := p.Check(test); !errors.As(err, &no) || no.Field != field || no.Reason == "" {
			t.Errorf("%s: %v", field, err)
		}
	}
}

func TestPeer_RefusedAndClosed(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	l.Close()
	_, err = transfer.Run(t.Context(), NewPeer(address), transfer.Spec{Direction: transfer.Up, Bytes: 1}, nil)
	var hint interface{ Try() string }
	if !errors.As(err, &hint) || hint.Try() == "" {
		t.Errorf("%v, without what to try", err)
	}
	address, _, _ = sink(t)
	p := NewPeer(address)
	_, err = transfer.Run(context.Background(), p, transfer.Spec{Direction: transfer.Up, Time: time.Minute},
		func(transfer.Interval) { p.Close() })
	if err == nil || err.Error() != "closed" {
		t.Errorf("closed while it ran: %v", err)
	}
}
