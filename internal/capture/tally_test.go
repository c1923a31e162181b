package capture

import (
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/flow"
)

func TestTallyOfALiveCapture(t *testing.T) {
	a, b, c := flow.Endpoint4(0xc0000201, 40000), flow.Endpoint4(0xc0000202, 443), flow.Endpoint4(0xc0000203, 443)
	tl := newTally(nil)
	at := int64(1e18)
	add := func(from, to flow.Endpoint, payload uint32, after time.Duration) {
		tl.add(&flow.Segment{At: at + int64(after), Src: from, Dst: to, Payload: payload})
	}
	add(a, b, 1000, 0)
	add(b, a, 0, 10*time.Millisecond)
	add(a, c, 250_000, 20*time.Millisecond)
	if tl.due(at + int64(999*time.Millisecond)) {
		t.Error("reported before a second was over")
	}
	end := at + int64(2*time.Second)
	if !tl.due(end) {
		t.Fatal("not reported after a second")
	}
	got := tl.traffic(3, end)
	if got.Packets != 3 || got.Connections != 2 || got.Span != 2*time.Second {
		t.Errorf("%+v", got)
	}
	if len(got.Busiest) != 2 || got.Busiest[0].To != c.AddrPort() || got.Busiest[0].Bps != 1e6 {
		t.Errorf("busiest: %+v", got.Busiest)
	}
	if again := tl.traffic(3, end+int64(time.Second)); len(again.Busiest) != 0 || again.Connections != 2 {
		t.Errorf("a second without data: %+v", again)
	}
}
