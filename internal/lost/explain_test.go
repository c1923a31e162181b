package lost

import (
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

func TestExplain(t *testing.T) {
	at := func(packets int64, seconds ...float64) (all []transfer.Move) {
		for _, s := range seconds {
			all = append(all, transfer.Move{At: time.Duration(s * float64(time.Second)), Packets: packets})
		}
		return all
	}
	counter := func(place Kind, packets int64, merged bool, moves ...transfer.Move) transfer.DropCounter {
		return transfer.DropCounter{Place: string(place), Packets: packets, Merged: merged, Moves: moves}
	}
	list := func(all ...transfer.DropCounter) []transfer.DropCounter { return all }
	losses := func(segments int64, moves ...transfer.Move) Lost { return Lost{segments, 1448, HeadersTCP, moves} }
	rule := transfer.DropCounter{Place: string(Firewall), Packets: 6, Bytes: 6*52 + 217*1448, Merged: true}
	for _, tt := range []struct {
		name             string
		lost             Lost
		sender, receiver []transfer.DropCounter
		want             string // place, "" for none
		segments         int64
		exact            bool
	}{
		{"no loss", losses(0), nil, list(counter(Queue, 5, true)), "", 0, false},
		{"no counter", losses(100), nil, nil, "", 0, false},
		{"a queue", losses(100), list(counter(Queue, 96, true)), nil, "queue", 96, true},
		{"merged packets without bytes", losses(100), nil, list(counter(Socket, 30, true)), "socket", 100, false},
		{"too few of merged packets", losses(100), nil, list(counter(Socket, 20, true)), "", 0, false},
		{"too few of single packets", losses(100), nil, list(counter(Device, 50, false)), "", 0, false},
		{"far more than was lost", losses(100), list(counter(Queue, 230, true)), nil, "", 0, false},
		{"some were refused", losses(100), list(counter(Queue, 160, true)), nil, "queue", 100, false},
		{"the receiver refuses none", losses(100), nil, list(counter(Device, 160, true)), "", 0, false},
		{"six packets, 217 segments in bytes", losses(217), nil, list(rule), "firewall", 217, true},
		{"two places", losses(100), list(counter(Queue, 50, true)), list(counter(Backlog, 50, true)), "", 0, false},
		{"another place moved hardly", losses(1000), list(counter(Queue, 950, true)),
			list(counter(Backlog, 5, true)), "queue", 950, true},
		{"two counters of one place", losses(100), nil, list(counter(Socket, 90, true), counter(Socket, 88, true)),
			"socket", 90, true},
		{"the device counts the backlog's", losses(100), nil, list(counter(Backlog, 90, true),
			counter(Device, 90, false)), "backlog", 90, true},
		{"the backlog has other devices' too", losses(100), nil, list(counter(Backlog, 1800, true),
			counter(Device, 98, false)), "backlog", 98, true},
		{"the device drops more than the backlog", losses(100), nil, list(counter(Backlog, 20, true),
			counter(Device, 100, false)), "", 0, false},
		{"in time", losses(100, at(50, 1.5, 8)...),
			list(counter(Queue, 100, true, at(50, 1, 7.5)...)), nil, "queue", 100, true},
		{"at another time", losses(100, at(50, 1.5, 8)...),
			list(counter(Queue, 100, true, at(50, 4, 5)...)), nil, "", 0, false},
		{"retransmissions at times without drops", losses(100, at(50, 1.5, 8)...),
			list(counter(Queue, 90, true, at(90, 1)...)), nil, "", 0, false},
		{"another place's drops have no retransmissions", losses(100, at(100, 1.5)...),
			list(counter(Queue, 100, true, at(100, 1)...)),
			list(counter(Device, 100, false, at(100, 6)...)), "queue", 100, true},
	} {
		found, ok := tt.lost.Explain(tt.sender, tt.receiver)
		place := ""
		if ok {
			place = found.Place
		}
		if place != tt.want || ok && (found.Segments != tt.segments || found.Exact != tt.exact) {
			t.Errorf("%s: %q, %+v", tt.name, place, found)
		}
	}
}

func TestDriverCounter(t *testing.T) {
	for name, want := range map[string]Counter{
		"rx_queue_3_drops": received, "rx0_drops": received, "  pkts rx OOB": received, "rx_queue_drop_cnt[12]": received,
		"rx7_buff_alloc_err": received, "rx_out_of_buffer": received,
		"tx_discards_phy": sent, "tx_too_big": sent.of(PacketSize),
		"rx_packets": {}, "rx0_xdp_drops": {}, "tx_queue_0_xdp_tx_drops": {}, "vf_rx_dropped_bytes": {},
	} {
		got, is := DriverCounter(name)
		if got != want || is != (want != Counter{}) {
			t.Errorf("%s: %+v", name, got)
		}
	}
	for _, name := range []string{"bw_in_allowance_exceeded", "pps_allowance_exceeded"} {
		if !IsAllowance(name) {
			t.Errorf("%s is no allowance", name)
		}
	}
}

func TestProtocolCounter(t *testing.T) {
	for name, want := range map[string]Counter{
		"TcpExtTCPBacklogDrop": {Socket, false, true, true, TCP}, "UdpRcvbufErrors": {Socket, false, true, false, UDP},
		"UdpSndbufErrors": sent.of(Socket).in(UDP), "IpFragFails": sent.of(PacketSize), "TcpExtPruneCalled": {},
	} {
		if got, is := ProtocolCounter(name); got != want || is != (want != Counter{}) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
