package capture

import (
	"context"
	"errors"
	"io"
	"net"
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/testenv"
	"github.com/fullpipe-net/fullpipe/internal/testenv/must"
)

func TestListenOnLoopback(t *testing.T) {
	testenv.Need(t, testenv.Root)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	f := must.Get(Listen(ctx, "lo"))(t)
	defer f.Close()
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer l.Close()
	const bytes = 1 << 20
	port := uint16(l.Addr().(*net.TCPAddr).Port)
	go func() {
		defer stop()
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Error(err)
			return
		}
		if _, err := c.Write(make([]byte, bytes)); err != nil {
			t.Error(err)
		}
		c.(*net.TCPConn).CloseWrite()
		io.Copy(io.Discard, c)
		c.Close()
	}()
	go func() {
		c, err := l.Accept()
		if err != nil {
			return
		}
		io.Copy(io.Discard, c)
		c.Close()
	}()
	a := must.Get(Analyze(context.Background(), Config{}, f))(t)
	for _, c := range a.Connections {
		if c.Server().Port != port {
			continue
		}
		d := c.Directions()[0]
		if d.Bytes+d.Unseen < bytes || d.RTTMin <= 0 || !c.SYN || !c.SYNACK {
			t.Errorf("%d bytes, least round trip %d ns, SYN %v, SYN-ACK %v", d.Bytes, d.RTTMin, c.SYN, c.SYNACK)
		}
		return
	}
	t.Errorf("the connection is not among %d", len(a.Connections))
}

// A megabyte passes without a reader: packets without room in the ring are counted.
func TestListen_CountsDroppedPackets(t *testing.T) {
	testenv.Need(t, testenv.Root)
	ctx, stop := context.WithCancel(t.Context())
	f := must.Get(listenThrough(ctx, "lo", ringSize{2, 1 << 14}))(t)
	defer f.Close()
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer l.Close()
	sent := make(chan error, 1)
	go func() {
		c, err := net.Dial("tcp", l.Addr().String())
		if err == nil {
			_, err = c.Write(make([]byte, 16<<20))
			err = errors.Join(err, c.Close())
		}
		sent <- err
	}()
	c := must.Get(l.Accept())(t)
	defer c.Close()
	must.Get(io.Copy(io.Discard, c))(t)
	if err := <-sent; err != nil {
		t.Fatal(err)
	}
	stop()
	a := must.Get(Analyze(context.Background(), Config{}, f))(t)
	if a.Lost == 0 || a.Packets == 0 {
		t.Errorf("%d packets, %d lost", a.Packets, a.Lost)
	}
}

func TestListen_NamesMissingPrivileges(t *testing.T) {
	if _, err := Listen(t.Context(), "nosuch0"); err == nil {
		t.Error("an interface that is not there was captured on")
	}
}
