package report

import (
	"reflect"
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

func TestLostAt(t *testing.T) {
	queue := transfer.LossPlace{Reason: "QDISC_DROP", Device: "lab0", Packets: 3, Dropped: 4000, Segments: 3, Bytes: 3000}
	refused := transfer.LossPlace{Reason: "NETFILTER_DROP", Packets: 2, Dropped: 9000}
	sends := func(segments int64, places ...transfer.LossPlace) *transfer.Losses {
		return &transfer.Losses{Retransmits: true, Segments: segments, Bytes: segments * 1000, Places: places}
	}
	receives := func(places ...transfer.LossPlace) *transfer.Losses { return &transfer.Losses{Places: places} }
	container := receives()
	container.NamespaceOnly = true
	incomplete := sends(4)
	incomplete.Incomplete = true
	few := sends(3, queue)
	few.Incomplete = true
	counters := []transfer.DropCounter{{Name: "nftables counter", Place: "firewall", Packets: 2,
		Bytes: 2*52 + 9000, Merged: true},
		{Name: "pps_allowance_exceeded", Place: "allowance-exceeded", Packets: 900}}
	n := func(n int64) *int64 { return &n }
	type row struct {
		place, side     string
		segments, bytes int64
		share           float64 // -1: none
	}
	for _, tt := range []struct {
		name    string
		losses  Losses
		watched string
		want    []row
	}{
		{"nobody watches", Losses{Retransmitted: n(4)}, "", nil},
		{"sender: all explained", Losses{Sender: sends(3, queue)}, "sender-host",
			[]row{{"queue", "sender-host", 3, 3000, 1}}},
		{"sender: some elsewhere", Losses{Sender: sends(4, refused, queue)}, "sender-host",
			[]row{{"queue", "sender-host", 3, 3000, 0.75}, {"firewall", "sender-host", 0, 0, 0},
				{"elsewhere", "", 1, 1000, 0.25}}},
		{"sender: records are missing", Losses{Sender: incomplete}, "", nil},
		{"sender: fewer retransmissions were seen than it counts", Losses{Sender: few, Retransmitted: n(10)}, "sender-host",
			[]row{{"queue", "sender-host", 3, 3000, 0.3}}},
		{"sender: no loss", Losses{Sender: &transfer.Losses{}}, "", nil},
		{"sender: some had arrived", Losses{Sender: sends(6, queue), Spurious: n(2)}, "sender-host",
			[]row{{"queue", "sender-host", 3, 3000, 0.5}, {"not-lost", "", 2, 2000, 1. / 3},
				{"elsewhere", "", 1, 1000, 1. / 6}}},
		{"sender: all others had arrived", Losses{Sender: sends(4, queue), Spurious: n(7)}, "sender-host",
			[]row{{"queue", "sender-host", 3, 3000, 0.75}, {"not-lost", "", 1, 1000, 0.25}}},
		{"receiver: bytes count", Losses{Receiver: receives(refused), Retransmitted: n(10)}, "receiver-host",
			[]row{{"firewall", "receiver-host", 9, 9000, 0.9}, {"elsewhere", "", 1, 1000, 0.1}}},
		{"receiver: the sender's count is not known", Losses{Receiver: receives(refused)}, "receiver-host",
			[]row{{"firewall", "receiver-host", 9, 9000, -1}}},
		{"receiver: nothing here", Losses{Receiver: receives(), Retransmitted: n(10)}, "receiver-host",
			[]row{{"elsewhere", "", 10, 10_000, 1}}},
		{"both: at two places", Losses{Sender: sends(12, queue), Receiver: receives(refused), Spurious: n(0)}, "both-hosts",
			[]row{{"firewall", "receiver-host", 9, 9000, 0.75}, {"queue", "sender-host", 3, 3000, 0.25}}},
		{"both: between the hosts", Losses{Sender: sends(12), Receiver: receives(), Spurious: n(0)}, "both-hosts",
			[]row{{"between-hosts", "", 12, 12_000, 1}}},
		{"both: needless retransmissions are not known", Losses{Sender: sends(12), Receiver: receives()}, "both-hosts",
			[]row{{"elsewhere", "", 12, 12_000, 1}}},
		{"both: a NAT", Losses{Sender: sends(12), Receiver: receives(), Spurious: n(0), AddressesChange: true}, "both-hosts",
			[]row{{"elsewhere", "", 12, 12_000, 1}}},
		{"both: a container", Losses{Sender: sends(12), Receiver: container, Spurious: n(0)}, "both-hosts",
			[]row{{"elsewhere", "", 12, 12_000, 1}}},
		{"both: records are missing", Losses{Sender: sends(12), Receiver: &transfer.Losses{Incomplete: true}, Spurious: n(0)},
			"", nil},
		{"counters: nothing moved", Losses{Retransmitted: n(4)}, "", nil},
		{"counters: the receiver's", Losses{ReceiverCounters: counters, Retransmitted: n(10), Spurious: n(1)},
			"receiver-host",
			[]row{{"firewall", "receiver-host", 9, 9000, 0.9}}},
		{"counters: retransmissions are not counted", Losses{ReceiverCounters: counters}, "", nil},
		{"counters: of the end that is not watched", Losses{Sender: sends(12, queue), ReceiverCounters: counters,
			Spurious: n(0)},
			"sender-host", []row{{"queue", "sender-host", 3, 3000, 0.25}, {"firewall", "receiver-host", 9, 9000, 0.75}}},
		{"counters: a watched end's are not needed", Losses{Sender: sends(9), Receiver: receives(),
			ReceiverCounters: counters, Spurious: n(0)}, "both-hosts", []row{{"between-hosts", "", 9, 9000, 1}}},
		{"one host", Losses{Sender: sends(3, queue), Receiver: sends(3, queue)}, "sender-host",
			[]row{{"queue", "sender-host", 3, 3000, 1}}},
		{"a far end's new reason", Losses{Receiver: receives(transfer.LossPlace{Reason: "NEW", Dropped: 1000}),
			Retransmitted: n(1)}, "receiver-host", []row{{"other", "receiver-host", 1, 1000, 1}}},
	} {
		var got []row
		tt.losses.MSS = 1000
		for _, l := range tt.losses.LostAt() {
			share := -1.0
			if l.Share != nil {
				share = *l.Share
			}
			got = append(got, row{l.Place, l.Side, l.Segments, l.Bytes, share})
			watched := tt.watched
			if l.Counter != "" {
				watched = l.Side
			}
			if l.Watched != watched {
				t.Errorf("%s: watched %s, want %s", tt.name, l.Watched, watched)
			}
		}
		if !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%s: got %+v\nwant %+v", tt.name, got, tt.want)
		}
	}
	if record.Elsewhere != "elsewhere" || record.BetweenHosts != "between-hosts" {
		t.Error("documents have other words")
	}
}
