package lost

import (
	"encoding/binary"
	"net/netip"
	"reflect"
	"testing"
	"time"
)

var (
	flowA = Flow{Source: netip.MustParseAddrPort("10.0.0.1:5000"), Destination: netip.MustParseAddrPort("10.0.0.2:80")}
	flowB = Flow{Source: netip.MustParseAddrPort("[fd00::1]:5000"), Destination: netip.MustParseAddrPort("[fd00::2]:80")}
	queue = Place{Reason: 64, Namespace: 1}
	nft   = Place{Reason: 12, Namespace: 1}
)

// event is a drop at a place, or without one a retransmission.
type event struct {
	ms       int
	flow     Flow
	seq      uint32
	bytes    uint32
	segments uint32
	place    Place
}

func play(m *Matcher, events []event) {
	for _, e := range events {
		at := time.Duration(e.ms) * time.Millisecond
		if e.segments == 0 {
			m.Drop(Drop{Flow: e.flow, Place: e.place, At: at, Seq: e.seq, Bytes: e.bytes})
		} else {
			m.Retransmission(Retransmission{Flow: e.flow, At: at, Range: Range{e.seq, e.seq + e.bytes}, Segments: e.segments,
				Namespace: 1})
		}
	}
}

func TestMatcher(t *testing.T) {
	for _, tt := range []struct {
		name   string
		events []event
		want   Counts
	}{
		{"one segment", []event{{0, flowA, 1000, 100, 0, queue}, {20, flowA, 1000, 100, 1, Place{}}},
			Counts{1, 1, 100, []Count{{queue, 1, 100, 1, 100}}}},
		{"no drop", []event{{20, flowA, 1000, 100, 1, Place{}}}, Counts{1, 1, 100, nil}},
		{"another range", []event{{0, flowA, 1000, 100, 0, queue}, {20, flowA, 1100, 100, 1, Place{}}},
			Counts{1, 1, 100, []Count{{queue, 1, 100, 0, 0}}}},
		{"another connection", []event{{0, flowB, 1000, 100, 0, queue}, {20, flowA, 1000, 100, 1, Place{}}},
			Counts{1, 1, 100, nil}},
		{"too old", []event{{0, flowA, 1000, 100, 0, queue}, {2001, flowA, 1000, 100, 1, Place{}}},
			Counts{1, 1, 100, []Count{{queue, 1, 100, 0, 0}}}},
		{"one merged packet, retransmitted by segments", []event{{0, flowA, 1000, 300, 0, nft},
			{20, flowA, 1000, 100, 1, Place{}}, {20, flowA, 1200, 100, 1, Place{}}, {20, flowA, 1100, 100, 1, Place{}}},
			Counts{1, 3, 300, []Count{{nft, 1, 300, 3, 300}}}},
		{"single packets, retransmitted together", []event{{0, flowA, 1000, 100, 0, nft}, {0, flowA, 1100, 100, 0, nft},
			{1, flowA, 1200, 100, 0, queue}, {20, flowA, 1000, 300, 3, Place{}}},
			Counts{1, 3, 300, []Count{{nft, 2, 200, 2, 200}, {queue, 1, 100, 1, 100}}}},
		{"part of a retransmitted range", []event{{0, flowA, 1100, 100, 0, nft}, {20, flowA, 1000, 400, 4, Place{}}},
			Counts{1, 4, 400, []Count{{nft, 1, 100, 1, 100}}}},
		{"a drop explains one retransmission", []event{{0, flowA, 1000, 100, 0, nft}, {20, flowA, 1000, 100, 1, Place{}},
			{40, flowA, 1000, 100, 1, Place{}}},
			Counts{1, 2, 200, []Count{{nft, 1, 100, 1, 100}}}},
		{"the retransmission is dropped too, before it is reported", []event{{0, flowA, 1000, 100, 0, nft},
			{200, flowA, 1000, 100, 0, nft}, {200, flowA, 1000, 100, 1, Place{}}, {600, flowA, 1000, 100, 1, Place{}}},
			Counts{1, 2, 200, []Count{{nft, 2, 200, 2, 200}}}},
		{"the retransmission timer backs off", []event{{0, flowA, 1000, 100, 0, nft}, {1600, flowA, 1000, 100, 0, nft},
			{1600, flowA, 1000, 100, 1, Place{}}, {4800, flowA, 1000, 100, 0, nft}, {4800, flowA, 1000, 100, 1, Place{}},
			{11200, flowA, 1000, 100, 1, Place{}}},
			Counts{1, 3, 300, []Count{{nft, 3, 300, 3, 300}}}},
		{"sequence numbers wrap", []event{{0, flowA, 0xffffffce, 100, 0, nft}, {20, flowA, 0, 50, 1, Place{}},
			{20, flowA, 0xffffffce, 50, 1, Place{}}},
			Counts{1, 2, 100, []Count{{nft, 1, 100, 2, 100}}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var m Matcher
			play(&m, tt.events)
			if got := m.Of(flowA); !reflect.DeepEqual(got, tt.want) {
				t.Errorf("got %+v\nwant %+v", got, tt.want)
			}
		})
	}
}

// TestMatcher_Refused checks that a packet that the host refused to transmit explains no later retransmission.
func TestMatcher_Refused(t *testing.T) {
	drop := func(seq, bytes uint32, unsent Range) Drop {
		return Drop{Flow: flowA, Place: nft, At: time.Second, Seq: seq, Bytes: bytes, Unsent: unsent}
	}
	unsent := Range{1000, 1300}
	for _, tt := range []struct {
		name    string
		drops   []Drop
		refused bool  // a retransmission of all bytes is refused first
		want    int64 // bytes of the retransmission of [1000, 1300) that the drops explain
	}{
		{"sent before", []Drop{drop(1000, 300, Range{1300, 1600})}, false, 300},
		{"nothing unsent", []Drop{drop(1000, 300, Range{})}, false, 300},
		{"refused", []Drop{drop(1000, 300, unsent)}, false, 0},
		{"refused twice", []Drop{drop(1000, 300, unsent), drop(1000, 300, unsent)}, false, 0},
		{"refused, then lost", []Drop{drop(1000, 300, unsent), drop(1000, 300, Range{1300, 1400})}, false, 300},
		{"split and dropped in part", []Drop{drop(1000, 100, unsent), drop(1200, 100, unsent)}, false, 200},
		{"split and refused", []Drop{drop(1000, 100, unsent), drop(1100, 100, unsent), drop(1200, 100, unsent)}, false, 0},
		{"a later part of what is unsent", []Drop{drop(1000, 100, Range{1000, 1100}), drop(1100, 100, Range{1300, 1400})},
			false, 100},
		{"the retransmission is refused", []Drop{drop(1000, 300, Range{1300, 1400})}, true, 0},
	} {
		var m Matcher
		for _, d := range tt.drops {
			m.Drop(d)
		}
		if tt.refused {
			m.Retransmission(Retransmission{Flow: flowA, At: time.Second, Range: unsent, Segments: 3, Refused: true})
		}
		m.Retransmission(Retransmission{Flow: flowA, At: 2 * time.Second, Range: unsent, Segments: 3})
		if c := m.Of(flowA); c.Places[0].Bytes != tt.want || c.Bytes != 300 || c.Places[0].Packets != int64(len(tt.drops)) {
			t.Errorf("%s: %+v, want %d bytes explained", tt.name, c, tt.want)
		}
	}
}

// TestMatcher_RefusedRetransmission checks that a refused retransmission takes its own drop with it, but not the loss
// that it was to repair.
func TestMatcher_RefusedRetransmission(t *testing.T) {
	var m Matcher
	lost := Range{1000, 1300}
	retransmit := func(at time.Duration, refused bool) {
		m.Retransmission(Retransmission{Flow: flowA, At: at, Range: lost, Segments: 3, Refused: refused})
	}
	m.Drop(Drop{Flow: flowA, Place: queue, At: time.Second, Seq: lost.Seq, Bytes: 300})
	soon := time.Second + synchronous/2 // a short round trip
	m.Drop(Drop{Flow: flowA, Place: queue, At: soon, Seq: lost.Seq, Bytes: 100})
	m.Drop(Drop{Flow: flowA, Place: queue, At: soon, Seq: lost.Seq + 100, Bytes: 200})
	retransmit(soon, true)
	retransmit(2*time.Second, false)
	retransmit(2*time.Second, false)
	if c := m.Of(flowA); c.Bytes != 600 || c.Places[0].Bytes != 300 {
		t.Errorf("%+v", c)
	}
}

func TestMatcher_Datagrams(t *testing.T) {
	var m Matcher
	udp := flowA
	udp.UDP = true
	for range 3 * maxDrops {
		m.Drop(Drop{Flow: udp, Place: nft, At: time.Second, Bytes: 100})
	}
	c := m.Of(udp)
	if m.Forgotten > 0 || len(c.Places) != 1 || c.Places[0].Packets != 3*maxDrops || len(m.Of(flowA).Places) > 0 {
		t.Errorf("%d forgotten, %+v", m.Forgotten, c)
	}
}

func TestMatcher_Take(t *testing.T) {
	var m Matcher
	play(&m, []event{{0, flowA, 1000, 100, 0, queue}, {1, flowA, 2000, 100, 0, nft}, {20, flowA, 1000, 100, 1, Place{}}})
	first := m.Take(flowA)
	play(&m, []event{{30, flowA, 2000, 100, 1, Place{}}})
	for i, want := range []Counts{{1, 1, 100, []Count{{queue, 1, 100, 1, 100}, {nft, 1, 100, 0, 0}}},
		{1, 1, 100, []Count{{nft, 0, 0, 1, 100}}}, {1, 0, 0, []Count{}}} {
		got := first
		if i > 0 {
			got = m.Take(flowA)
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%d: got %+v\nwant %+v", i, got, want)
		}
	}
}

func TestMatcher_MemoryIsBounded(t *testing.T) {
	var m Matcher
	for i := range uint32(3 * maxFlows) {
		f := flowA
		f.Source = netip.AddrPortFrom(f.Source.Addr(), uint16(i))
		for j := range uint32(2) {
			m.Drop(Drop{Flow: f, Place: queue, At: time.Duration(i), Seq: j * 100, Bytes: 10})
		}
	}
	for i := range uint32(3 * maxDrops) {
		place := queue
		place.Reason = i % (2 * maxPlaces)
		m.Drop(Drop{Flow: flowA, Place: place, At: 3 * maxFlows, Seq: i * 100, Bytes: 10})
	}
	f := m.flows[flowA]
	if len(m.flows) > maxFlows || len(f.drops) > maxDrops || len(f.places) > maxPlaces || m.Forgotten == 0 {
		t.Errorf("%d flows, %d drops, %d places, %d forgotten", len(m.flows), len(f.drops), len(f.places), m.Forgotten)
	}
}

func TestMatcher_AllocatesNothingPerEvent(t *testing.T) {
	var m Matcher
	seq := uint32(0)
	at := time.Duration(0)
	step := func() {
		at += time.Millisecond
		seq += 1000
		m.Drop(Drop{Flow: flowA, Place: queue, At: at, Seq: seq, Bytes: 100})
		m.Retransmission(Retransmission{Flow: flowA, At: at, Range: Range{seq, seq + 100}, Segments: 1})
	}
	step()
	if n := testing.AllocsPerRun(1000, step); n > 0 {
		t.Errorf("%v allocations an event", n)
	}
}

// FuzzMatcher checks that no retransmitted byte and no dropped byte counts twice, and that memory is bounded.
func FuzzMatcher(f *testing.F) {
	f.Add([]byte{0, 1, 0, 10, 1, 0, 1, 0, 10, 2, 3, 4, 5, 6, 7, 8, 9})
	f.Fuzz(func(t *testing.T, b []byte) {
		var m Matcher
		at := time.Duration(0)
		for b = b[:min(len(b), 3000)]; len(b) >= 6; b = b[6:] {
			at += time.Duration(b[5]) * 10 * time.Millisecond
			flow := flowA
			if b[0]&2 != 0 {
				flow = flowB
			}
			seq := uint32(binary.LittleEndian.Uint16(b[1:])) - 30000
			if b[0]&1 == 0 {
				unsent := Range{seq, seq + uint32(b[3]&7)*200}
				if b[0]&4 != 0 {
					unsent.Seq = unsent.End
				}
				m.Drop(Drop{Flow: flow, Place: Place{Reason: uint32(b[3] >> 4)}, At: at, Seq: seq, Bytes: uint32(b[4]) * 20,
					Unsent: unsent})
			} else {
				m.Retransmission(Retransmission{Flow: flow, At: at, Range: Range{seq, seq + uint32(b[4])*20},
					Segments: uint32(b[3]), Refused: b[0]&8 != 0})
			}
			for _, flow := range []Flow{flowA, flowB} {
				check(t, m.Of(flow))
			}
		}
	})
}

func check(t *testing.T, c Counts) {
	t.Helper()
	bytes, segments := int64(0), int64(0)
	for _, p := range c.Places {
		bytes += p.Bytes
		segments += p.Segments
		if p.Bytes > p.Dropped || p.Packets == 0 {
			t.Fatalf("more explained than dropped: %+v", p)
		}
	}
	if bytes > c.Bytes || segments > c.Segments {
		t.Fatalf("more explained than retransmitted: %+v", c)
	}
}

func TestReasons_HaveOneMeaning(t *testing.T) {
	for name := range noise {
		if _, too := reasons[name]; too {
			t.Errorf("%s is a loss and none", name)
		}
	}
	if KindOf("NETFILTER_DROP") != Firewall || KindOf("QUEUE_PURGE") != "" || KindOf("NEW_REASON") != Other {
		t.Error("wrong kinds")
	}
}
