package bulk

import (
	"errors"
	"net"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/socket"
	"github.com/fullpipe-net/fullpipe/internal/testenv/must"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// receive takes a transfer of some bytes from senders that each write as many, and close.
func receive(t *testing.T, bytes int64, streams int, eachWrites int64) (*transfer.End, error) {
	t.Helper()
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer l.Close()
	p := Endpoint{Spec: transfer.Spec{Direction: transfer.Down, Bytes: bytes, Streams: streams}}
	for range streams {
		conn := must.Get(net.Dial("tcp", l.Addr().String()))(t)
		from := must.Get(l.Accept())(t)
		go func() {
			defer from.Close()
			buffer := make([]byte, 100_001)
			for left := eachWrites; left > 0; {
				n, err := from.Write(buffer[:min(int64(len(buffer)), left)])
				left -= int64(n)
				if err != nil {
					return
				}
			}
		}()
		s := must.Get(socket.NewStream(conn.(*net.TCPConn), socket.Options{}))(t)
		t.Cleanup(func() { s.Close() })
		p.Streams = append(p.Streams, s)
	}
	return p.Run(t.Context())
}

// TestReceive_Ceiling checks that a receiver takes what was asked for, and not more from a sender that goes on.
func TestReceive_Ceiling(t *testing.T) {
	for _, c := range []struct {
		bytes   int64
		streams int
	}{{1, 1}, {5_000_000, 1}, {7, 5}, {3_000_003, 3}, {40_000_000, 16}} {
		part := (c.bytes + int64(c.streams) - 1) / int64(c.streams)
		if c.bytes%int64(c.streams) == 0 {
			end, err := receive(t, c.bytes, c.streams, part)
			if err != nil || totalOf(end) != c.bytes || end.Moved != c.bytes {
				t.Errorf("%d bytes on %d streams: %v, moved %d", c.bytes, c.streams, err, end.Moved)
			}
		}
		end, err := receive(t, c.bytes, c.streams, 100*part+time.Second.Nanoseconds())
		if !errors.Is(err, ErrExcess) {
			t.Errorf("%d bytes on %d streams, and more come: %v", c.bytes, c.streams, err)
		}
		if got := totalOf(end); got < c.bytes || got > c.bytes+int64(c.streams) || end.Moved < got {
			t.Errorf("%d bytes on %d streams: took %d, moved %d", c.bytes, c.streams, got, end.Moved)
		}
	}
}

func totalOf(end *transfer.End) (bytes int64) {
	for _, s := range end.Streams {
		bytes += s.Bytes
	}
	return bytes
}
