package report

import (
	"reflect"
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/drops"
	"github.com/fullpipe-net/fullpipe/internal/lost"
	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

func TestLostAt(t *testing.T) {
	queue := drops.Place{Kind: lost.Queue, Reason: "QDISC_DROP", Device: "lab0", Packets: 3, Dropped: 4000, Segments: 3,
		Bytes: 3000}
	refused := drops.Place{Kind: lost.Firewall, Reason: "NETFILTER_DROP", Packets: 2, Dropped: 9000}
	sent := int64(10_000)
	type place struct {
		place, side     string
		segments, bytes int64
		share           float64 // -1: none
	}
	for _, tt := range []struct {
		name          string
		counts        drops.Counts
		direction     transfer.Direction
		retransmitted *int64
		want          []place
	}{
		{"sender: all explained", drops.Counts{Retransmits: true, Segments: 3, Bytes: 3000, Places: []drops.Place{queue}},
			transfer.Up, nil, []place{{"queue", "sender-host", 3, 3000, 1}}},
		{"sender: some elsewhere", drops.Counts{Retransmits: true, Segments: 4, Bytes: 4000,
			Places: []drops.Place{refused, queue}}, transfer.Up, nil, []place{{"queue", "sender-host", 3, 3000, 0.75},
			{"firewall", "sender-host", 0, 0, 0}, {"elsewhere", "", 1, 1000, 0.25}}},
		{"sender: records are missing", drops.Counts{Retransmits: true, Segments: 4, Bytes: 4000, Missed: 1}, transfer.Up,
			nil, nil},
		{"sender: fewer retransmissions were seen than it counts", drops.Counts{Retransmits: true, Segments: 3, Bytes: 3000,
			Missed: 7, Places: []drops.Place{queue}}, transfer.Up, &sent, []place{{"queue", "sender-host", 3, 3000, 0.3}}},
		{"no loss", drops.Counts{}, transfer.Up, nil, nil},
		{"receiver: bytes count", drops.Counts{Places: []drops.Place{refused}}, transfer.Down, &sent,
			[]place{{"firewall", "receiver-host", 9, 9000, 0.9}}},
		{"receiver: the sender's count is not known", drops.Counts{Places: []drops.Place{refused}}, transfer.Down, nil,
			[]place{{"firewall", "receiver-host", 9, 9000, -1}}},
		{"receiver: nothing here", drops.Counts{}, transfer.Down, &sent, []place{{"elsewhere", "", 10, 10_000, 1}}},
	} {
		var got []place
		for _, l := range LostAt(tt.counts, tt.direction, 1000, tt.retransmitted) {
			share := -1.0
			if l.Share != nil {
				share = *l.Share
			}
			got = append(got, place{l.Place, l.Side, l.Segments, l.Bytes, share})
			if l.Watched != map[transfer.Direction]string{transfer.Up: record.SenderHost,
				transfer.Down: record.ReceiverHost}[tt.direction] {
				t.Errorf("%s: watched %s", tt.name, l.Watched)
			}
		}
		if !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%s: got %+v\nwant %+v", tt.name, got, tt.want)
		}
	}
}
