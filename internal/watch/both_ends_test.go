package watch

import (
	"net/netip"
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// TestBothEnds gives a receiver the verdict of a sender on this host: the only match, with as many bytes, and where the
// receiver's own verdict is open.
func TestBothEndsOfAConnection(t *testing.T) {
	host, container := netip.MustParseAddrPort("10.9.9.1:7001"), netip.MustParseAddrPort("10.9.9.2:53786")
	const sent = 1_000_000
	end := func(local, remote netip.AddrPort, d transfer.Direction, bytes int64, limiter verdict.Name) Observed {
		return Observed{Connection: &Connection{Snapshot: Snapshot{Local: local, Remote: remote}}, Flows: []Flow{{
			Direction: d, Bytes: bytes, Verdict: verdict.Verdict{Limiter: limiter, Confidence: verdict.Medium,
				Evidence: []verdict.Evidence{{Limiter: limiter, Code: verdict.ClocksAlone}}}}}}
	}
	sender := end(container, host, transfer.Up, sent, verdict.Application)
	for _, c := range []struct {
		name string
		seen []Observed
		want verdict.Name
	}{
		{"seen at its sender", []Observed{sender, end(host, container, transfer.Down, sent*9/10, verdict.Unknown)},
			verdict.Application},
		{"a pause looks like a queue", []Observed{sender, end(host, container, transfer.Down, sent, verdict.Bottleneck)},
			verdict.Application},
		{"the receiver knows", []Observed{sender, end(host, container, transfer.Down, sent, verdict.ReceiverApplication)},
			verdict.ReceiverApplication},
		{"the sender does not know", []Observed{end(container, host, transfer.Up, sent, verdict.Unknown),
			end(host, container, transfer.Down, sent, verdict.Unknown)}, verdict.Unknown},
		{"twice as much came", []Observed{sender, end(host, container, transfer.Down, 2*sent, verdict.Unknown)},
			verdict.Unknown},
		{"two senders have these addresses", []Observed{sender,
			end(container, host, transfer.Up, sent, verdict.Congestion),
			end(host, container, transfer.Down, sent, verdict.Unknown)}, verdict.Unknown},
		{"another sender has them and an open verdict", []Observed{sender,
			end(container, host, transfer.Up, sent, verdict.Unknown),
			end(host, container, transfer.Down, sent, verdict.Unknown)}, verdict.Unknown},
		{"another port", []Observed{sender, end(host, netip.MustParseAddrPort("10.9.9.2:53787"), transfer.Down, sent,
			verdict.Unknown)}, verdict.Unknown},
	} {
		v := View{Connections: c.seen}
		v.bothEnds()
		got := c.seen[len(c.seen)-1].Flows[0].Verdict
		if got.Limiter != c.want {
			t.Errorf("%s: %s, want %s", c.name, got.Limiter, c.want)
		}
		if sawSender := got.Evidence[0].Code == verdict.SenderIsHere; sawSender != (c.want == verdict.Application) {
			t.Errorf("%s: evidence of the place: %v", c.name, sawSender)
		}
	}
	if code := sender.Flows[0].Verdict.Evidence[0].Code; code != verdict.ClocksAlone {
		t.Errorf("the sender's own evidence is %s", code)
	}
}
