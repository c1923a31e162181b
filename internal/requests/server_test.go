package requests

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/testenv/must"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// lateContext is a context whose end is noticed before functions that wait for it run.
type lateContext struct{ context.Context }

func (lateContext) AfterFunc(func()) func() bool { return func() bool { return true } }
func (lateContext) Value(any) any                { return nil }

// TestServe_EndsSilentConnections checks that a server does not wait for clients that send nothing when its test ends.
func TestServe_EndsSilentConnections(t *testing.T) {
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer l.Close()
	client := must.Get(net.Dial("tcp", l.Addr().String()))(t)
	defer client.Close()
	accepted := must.Get(l.Accept())(t)
	a := &responder{spec: transfer.Requests{RequestBytes: 100, ResponseBytes: 100}, end: func(error) {}}
	ctx, cancel := context.WithCancel(t.Context())
	arriving := make(chan *net.TCPConn)
	served := make(chan struct{})
	go func() {
		defer close(served)
		a.serve(lateContext{ctx}, arriving, 1)
	}()
	arriving <- accepted.(*net.TCPConn)
	for begun := false; !begun; time.Sleep(time.Millisecond) {
		a.mu.Lock()
		begun = a.seen.Connections == 1
		a.mu.Unlock()
	}
	cancel()
	select {
	case <-served:
	case <-time.After(20 * time.Second):
		t.Error("the server waits for a silent client")
	}
}
