package probe

import (
	"context"
	"io"
	"net"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/testenv/must"
)

// TestConnect_BytesToASilentServer counts what a server that is none of ours gets; docs/security.md has the numbers.
func TestConnect_BytesToASilentServer(t *testing.T) {
	t.Parallel()
	for cautious, want := range map[bool]int64{true: PrefaceSize, false: 285} {
		l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
		defer l.Close()
		got := make(chan int64)
		go func() {
			conn, err := l.Accept()
			if err != nil {
				close(got)
				return
			}
			defer conn.Close()
			n, _ := io.Copy(io.Discard, conn)
			got <- n
		}()
		far := Far{Address: l.Addr().String(), Key: NewKey(), Cautious: cautious,
			Timeouts: Timeouts{Answer: 300 * time.Millisecond}}
		if _, err := far.Connect(context.Background()); err == nil {
			t.Error("connected")
		}
		if n := <-got; n != want {
			t.Errorf("cautious %v: %d bytes, want %d", cautious, n, want)
		}
	}
}
