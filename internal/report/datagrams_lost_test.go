package report

import (
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

func TestDatagramsLostAt(t *testing.T) {
	n := func(n int64) *int64 { return &n }
	queue := []transfer.DropCounter{{Name: "tbf dropped", Place: "queue", Packets: 95, Merged: true}}
	buffer := []transfer.DropCounter{{Name: "UdpRcvbufErrors", Place: "socket", Packets: 100}}
	firewall := &transfer.Losses{Places: []transfer.LossPlace{{Reason: "NETFILTER_DROP", Packets: 30, Dropped: 60 * 1448},
		{Reason: "SOCKET_RCVBUFF", Packets: 100, Dropped: 100 * 1448}}}
	part := &transfer.Losses{NamespaceOnly: true}
	type row struct {
		place, side string
		datagrams   int64
		confidence  verdict.Confidence
	}
	socket := row{"socket", record.ReceiverHost, 100, verdict.High}
	for _, tt := range []struct {
		name      string
		direction transfer.Direction
		lost      int64
		socket    *int64
		counters  []transfer.DropCounter
		losses    *transfer.Losses
		want      []row
	}{
		{"nothing lost", transfer.Up, 0, n(0), queue, nil, nil},
		{"nothing known", transfer.Up, 100, nil, nil, nil, nil},
		{"the receiver's socket", transfer.Up, 100, n(100), nil, nil, []row{socket}},
		{"more than is missing", transfer.Down, 100, n(130), buffer, nil, []row{socket}},
		{"counters include the socket's own", transfer.Down, 105, n(100), buffer, nil, []row{socket}},
		{"this host's queue", transfer.Up, 100, n(0), queue, nil, []row{{"queue", record.SenderHost, 95, verdict.Medium}}},
		{"a far end without counts", transfer.Up, 100, nil, queue, nil,
			[]row{{"queue", record.SenderHost, 95, verdict.Medium}}},
		{"the socket, and the way", transfer.Down, 200, n(100), nil, nil,
			[]row{socket, {record.Elsewhere, "", 100, verdict.Medium}}},
		{"the way", transfer.Up, 100, n(0), nil, nil, []row{{record.Elsewhere, "", 100, verdict.Medium}}},
		{"a queue that carries others too", transfer.Up, 20, n(0), queue, nil,
			[]row{{record.Elsewhere, "", 20, verdict.Medium}}},
		{"this host's firewall, and the socket, which counts itself", transfer.Down, 165, n(100), buffer, firewall,
			[]row{socket, {"firewall", record.ReceiverHost, 60, verdict.High}}},
		{"this host's drops are known", transfer.Up, 100, n(0), queue, &transfer.Losses{},
			[]row{{record.Elsewhere, "", 100, verdict.High}}},
		{"a container's drops are known", transfer.Up, 100, n(0), nil, part,
			[]row{{record.Elsewhere, "", 100, verdict.Medium}}},
	} {
		r := &transfer.DatagramResult{Spec: transfer.DatagramSpec{Direction: tt.direction, Size: 1448}, Lost: tt.lost,
			SocketDrops: tt.socket, DropCounters: tt.counters, Losses: tt.losses}
		all := datagramsLostAt(r)
		if len(all) != len(tt.want) {
			t.Errorf("%s: %+v", tt.name, all)
			continue
		}
		for i, l := range all {
			if got := (row{l.Place, l.Side, l.Segments, l.Confidence}); got != tt.want[i] {
				t.Errorf("%s: %+v, want %+v", tt.name, got, tt.want[i])
			}
		}
	}
}
