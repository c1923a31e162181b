package watch

import (
	"net/netip"
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// What arrives from a sender that is followed too is limited by what limits that one, if it is the only one that
// fits, as much came as went, and the receiver does not know better.
func TestBothEndsOfAConnection(t *testing.T) {
	host, container := netip.MustParseAddrPort("10.9.9.1:7001"), netip.MustParseAddrPort("10.9.9.2:53786")
	const sent = 1_000_000
	end := func(local, remote netip.AddrPort, d transfer.Direction, bytes int64, limiter verdict.Name) Seen {
		return Seen{Connection: &Connection{Told: Told{Local: local, Remote: remote}}, Flows: []Flow{{
			Direction: d, Bytes: bytes, Verdict: verdict.Verdict{Limiter: limiter, Confidence: verdict.Medium,
				Evidence: []verdict.Evidence{{Limiter: limiter, Code: verdict.ClocksAlone}}}}}}
	}
	sender := end(container, host, transfer.Up, sent, verdict.Application)
	for _, c := range []struct {
		what string
		seen []Seen
		want verdict.Name
	}{
		{"seen at its sender", []Seen{sender, end(host, container, transfer.Down, sent*9/10, verdict.Unknown)},
			verdict.Application},
		{"the receiver knows", []Seen{sender, end(host, container, transfer.Down, sent, verdict.ReceiverApplication)},
			verdict.ReceiverApplication},
		{"the sender does not know", []Seen{end(container, host, transfer.Up, sent, verdict.Unknown),
			end(host, container, transfer.Down, sent, verdict.Unknown)}, verdict.Unknown},
		{"twice as much came", []Seen{sender, end(host, container, transfer.Down, 2*sent, verdict.Unknown)},
			verdict.Unknown},
		{"two senders have these addresses", []Seen{sender,
			end(container, host, transfer.Up, sent, verdict.Congestion),
			end(host, container, transfer.Down, sent, verdict.Unknown)}, verdict.Unknown},
		{"another sender has them, of which nothing is known", []Seen{sender,
			end(container, host, transfer.Up, sent, verdict.Unknown),
			end(host, container, transfer.Down, sent, verdict.Unknown)}, verdict.Unknown},
		{"another port", []Seen{sender, end(host, netip.MustParseAddrPort("10.9.9.2:53787"), transfer.Down, sent,
			verdict.Unknown)}, verdict.Unknown},
	} {
		v := View{Seen: c.seen}
		v.bothEnds()
		got := c.seen[len(c.seen)-1].Flows[0].Verdict
		if got.Limiter != c.want {
			t.Errorf("%s: %s, want %s", c.what, got.Limiter, c.want)
		}
		if told := got.Evidence[0].Code == verdict.SenderIsHere; told != (c.want == verdict.Application) {
			t.Errorf("%s: where it was seen is told: %v", c.what, told)
		}
	}
	if code := sender.Flows[0].Verdict.Evidence[0].Code; code != verdict.ClocksAlone {
		t.Errorf("the sender's own evidence is %s", code)
	}
}
