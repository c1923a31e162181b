package text

import (
	"slices"
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/lost"
	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

func TestLostRows(t *testing.T) {
	n := int64(430)
	for _, tt := range []struct {
		all           []record.LostAt
		retransmitted *int64
		want          []string
	}{
		{[]record.LostAt{
			{Place: "queue", Side: "sender-host", Reason: "QDISC_DROP", Dev: "lab0", Qdisc: "tbf", Segments: 412,
				DroppedPackets: 412, Watched: "sender-host"}, {Place: "elsewhere", Segments: 18, Watched: "sender-host"}}, &n,
			[]string{"this host's queue (QDISC_DROP, lab0 tbf): 412 of 430 retransmitted segments",
				"not dropped on this host: 18 of 430 retransmitted segments; the far host was " +
					"not watched"}},
		{[]record.LostAt{{Place: "elsewhere", Segments: 430}}, &n,
			[]string{"not dropped on this host; the far host was not watched"}},
		{[]record.LostAt{{Place: "firewall", Side: "receiver-host", Reason: "NETFILTER_DROP", Dev: "eth0", Segments: 1,
			DroppedPackets: 1}}, nil,
			[]string{"this host's firewall (NETFILTER_DROP, input hook): 1 of 1 retransmitted segment"}},
		{[]record.LostAt{{Place: "firewall", Side: "sender-host", Reason: "NETFILTER_DROP", DroppedPackets: 12,
			DroppedBytes: 86880}}, nil,
			[]string{"this host's firewall (NETFILTER_DROP, output hook): 12 packets, 84.8 KiB, without a retransmission"}},
		{[]record.LostAt{{Place: "firewall", Side: "sender-host", Reason: "NETFILTER_DROP", Forwarded: true,
			Segments: 2}}, nil,
			[]string{"this host's firewall (NETFILTER_DROP, forward hook): 2 of 2 retransmitted segments"}},
		{[]record.LostAt{{Place: "firewall", Side: "sender-host", Reason: "NETFILTER_DROP", DroppedPackets: 1,
			DroppedBytes: 1448}, {Place: "elsewhere", Segments: 3}}, nil,
			[]string{"this host's firewall (NETFILTER_DROP, output hook): 1 packet, 1448 B, without a retransmission",
				"not dropped on this host: 3 of 3 retransmitted segments; the far host was not " +
					"watched"}},
		{[]record.LostAt{{Place: "elsewhere", Segments: 430, NamespaceOnly: true}}, &n,
			[]string{"not dropped in this network namespace; its host and the far host were " +
				"not watched"}},
		{[]record.LostAt{{Place: "queue", Reason: "QDISC_DROP", Segments: 402, Watched: "sender-host"}}, &n,
			[]string{"this host's queue (QDISC_DROP): 402 of 430 retransmitted segments"}}, // as the kernel counts
		{nil, &n, nil},
	} {
		if got := lostRows(tt.all, tt.retransmitted); !slices.Equal(got, tt.want) {
			t.Errorf("got %q\nwant %q", got, tt.want)
		}
	}
	for _, kind := range lost.Kinds() {
		if placeNames[string(kind)] == "" {
			t.Errorf("%s has no words", kind)
		}
	}
}

// TestOperatorsRow checks that nobody is sent to the network's operators about drops of this host.
func TestOperatorsRow(t *testing.T) {
	here := []record.LostAt{{Place: "queue"}, {Place: record.Elsewhere}}
	for _, tt := range []struct {
		limiter verdict.Name
		lostAt  []record.LostAt
		want    int
	}{{verdict.Bottleneck, nil, 1}, {verdict.Congestion, here[1:], 1}, {verdict.Bottleneck, here, 0},
		{verdict.ReceiverWindow, nil, 0}} {
		rows := newTable()
		operatorsRow(rows, tt.limiter, tt.lostAt)
		if len(rows.rows) != tt.want {
			t.Errorf("%s, %v: %v", tt.limiter, tt.lostAt, rows.rows)
		}
	}
}
