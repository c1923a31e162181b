package text

import (
	"slices"
	"strings"
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/lost"
	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

func TestLostRows(t *testing.T) {
	n := int64(430)
	for _, tt := range []struct {
		direction     transfer.Direction
		all           []record.LostAt
		retransmitted *int64
		want          []string
	}{
		{transfer.Up, []record.LostAt{
			{Place: "queue", Side: "sender-host", Reason: "QDISC_DROP", Dev: "lab0", Qdisc: "tbf", Segments: 412,
				DroppedPackets: 412, Watched: "sender-host"}, {Place: "elsewhere", Segments: 18, Watched: "sender-host"}}, &n,
			[]string{"this host's queue (QDISC_DROP, lab0 tbf): 412 of 430 retransmitted segments",
				"not dropped on this host: 18 of 430 retransmitted segments; the far host was not watched"}},
		{transfer.Up, []record.LostAt{{Place: "elsewhere", Segments: 430, Watched: "sender-host"}}, &n,
			[]string{"not dropped on this host; the far host was not watched"}},
		{transfer.Down, []record.LostAt{{Place: "firewall", Side: "receiver-host", Reason: "NETFILTER_DROP",
			Dev: "eth0", Segments: 1, DroppedPackets: 1}}, nil,
			[]string{"this host's firewall (NETFILTER_DROP, input hook): 1 of 1 retransmitted segment"}},
		{transfer.Up, []record.LostAt{{Place: "firewall", Side: "sender-host", Reason: "NETFILTER_DROP", DroppedPackets: 12,
			DroppedBytes: 86880}}, nil,
			[]string{"this host's firewall (NETFILTER_DROP, output hook): 12 packets, 84.8 KiB, without a retransmission"}},
		{transfer.Up, []record.LostAt{{Place: "firewall", Side: "sender-host", Reason: "NETFILTER_DROP", Forwarded: true,
			Segments: 2}}, nil,
			[]string{"this host's firewall (NETFILTER_DROP, forward hook): 2 of 2 retransmitted segments"}},
		{transfer.Up, []record.LostAt{{Place: "firewall", Side: "sender-host", Reason: "NETFILTER_DROP", DroppedPackets: 1,
			DroppedBytes: 1448}, {Place: "elsewhere", Segments: 3, Watched: "sender-host"}}, nil,
			[]string{"this host's firewall (NETFILTER_DROP, output hook): 1 packet, 1448 B, without a retransmission",
				"not dropped on this host: 3 of 3 retransmitted segments; the far host was not watched"}},
		{transfer.Up, []record.LostAt{{Place: "elsewhere", Segments: 430, Watched: "sender-host",
			NamespaceOnly: true}}, &n,
			[]string{"not dropped in this network namespace; its host and the far host were not watched"}},
		{transfer.Up, []record.LostAt{{Place: "queue", Side: "sender-host", Reason: "QDISC_DROP", Segments: 402,
			Watched: "sender-host"}}, &n,
			[]string{"this host's queue (QDISC_DROP): 402 of 430 retransmitted segments"}}, // as the kernel counts
		{transfer.Up, []record.LostAt{{Place: "queue", Side: "sender-host", Counter: "tbf dropped", Dev: "near",
			Segments: 412, DroppedPackets: 412, Watched: "both-hosts", Confidence: verdict.Medium}}, &n,
			[]string{"this host's queue (tbf dropped, near): 412 packets dropped, 430 retransmitted segments; " +
				"confidence medium (counters of all connections)"}},
		{transfer.Up, []record.LostAt{{Place: "firewall", Side: "receiver-host", Counter: "nftables counter",
			Rule: "inet t in handle 3", Segments: 217, DroppedPackets: 6, DroppedBytes: 314568,
			Confidence: verdict.Medium}}, nil,
			[]string{"the receiver's firewall (nftables counter, inet t in handle 3): 6 packets, 307 KiB, dropped, " +
				"217 retransmitted segments; confidence medium (counters of all connections)"}},
		{transfer.Up, []record.LostAt{{Place: "firewall", Side: "receiver-host", Reason: "NETFILTER_DROP",
			Rule: "inet t in handle 3", Segments: 217, Confidence: verdict.High}}, nil,
			[]string{"the receiver's firewall (NETFILTER_DROP, inet t in handle 3): 217 of 217 retransmitted segments"}},
		{transfer.Up, nil, &n, nil},
		{transfer.Up, []record.LostAt{{Place: "firewall", Side: "receiver-host", Reason: "NETFILTER_DROP", Segments: 217,
			Watched: "both-hosts"}}, new(int64(217)),
			[]string{"the receiver's firewall (NETFILTER_DROP, input hook): 217 of 217 retransmitted segments"}},
		{transfer.Down, []record.LostAt{{Place: "queue", Side: "sender-host", Reason: "QDISC_DROP", Segments: 3,
			Watched: "both-hosts"}, {Place: "not-lost", Segments: 1}, {Place: "between-hosts", Segments: 2}}, nil,
			[]string{"the sender's queue (QDISC_DROP): 3 of 6 retransmitted segments",
				"not lost: 1 of 6 retransmitted segments had arrived before (DSACK)",
				"between the hosts: 2 of 6 retransmitted segments; both ends were watched"}},
		{transfer.Up, []record.LostAt{{Place: "between-hosts", Segments: 430, Watched: "both-hosts"}}, &n,
			[]string{"between the hosts: all places at both ends were watched, none dropped them"}},
		{transfer.Up, []record.LostAt{{Place: "elsewhere", Segments: 430, Watched: "both-hosts", NamespaceOnly: true}}, &n,
			[]string{"not dropped in the two network namespaces; their hosts were not watched"}},
		{transfer.Up, []record.LostAt{{Place: "elsewhere", Segments: 430, Watched: "both-hosts", AddressesChange: true}}, &n,
			[]string{"not dropped on the two hosts, as far as they see; addresses change on the way (NAT), " +
				"and drops behind it are not seen"}},
		{transfer.Up, []record.LostAt{{Place: "elsewhere", Segments: 430, Watched: "receiver-host"}}, &n,
			[]string{"not dropped on the far host; this host was not watched"}},
	} {
		if got := lostRows(tt.all, tt.direction, tt.retransmitted); !slices.Equal(got, tt.want) {
			t.Errorf("got %q\nwant %q", got, tt.want)
		}
	}
	for _, kind := range lost.Kinds() {
		if placeNames[string(kind)] == "" {
			t.Errorf("%s has no words", kind)
		}
	}
}

// TestWatch_PlacesOfLoss prints a whole host's places, not what was lost elsewhere.
func TestWatch_PlacesOfLoss(t *testing.T) {
	direction := record.WatchedDirection{Direction: transfer.Up, LostAt: []record.LostAt{
		{Place: "queue", Side: "sender-host", Reason: "QDISC_DROP", Dev: "eth0", Segments: 5, Watched: "sender-host"},
		{Place: "elsewhere", Segments: 2, Watched: "sender-host"}}}
	d := record.Watch{Connections: []record.WatchedConnection{{Remote: "192.0.2.1:80",
		Directions: []record.WatchedDirection{direction}}}}
	var out strings.Builder
	watchedLosses(&out, &d)
	const want = "- lost at this host's queue (QDISC_DROP, eth0): 5 of 7 retransmitted segments to or from 192.0.2.1:80"
	if strings.Join(strings.Fields(out.String()), " ") != want {
		t.Errorf("%q", out.String())
	}
}

func TestLostClause(t *testing.T) {
	for row, want := range map[string]string{
		"this host's queue (QDISC_DROP)":        "lost at this host's queue (QDISC_DROP)",
		"between the hosts: 2 of 6":             "lost between the hosts: 2 of 6",
		"not lost: 1 of 6 had arrived before":   "not lost: 1 of 6 had arrived before",
		"not dropped on this host; the far one": "not dropped on this host; the far one",
	} {
		if got := lostClause(row); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// TestOperatorsRow checks that nobody is sent to the network's operators about drops of this host.
func TestOperatorsRow(t *testing.T) {
	here := []record.LostAt{{Place: "queue", Side: "sender-host"}, {Place: record.Elsewhere}}
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
