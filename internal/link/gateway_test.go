package link

import (
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/model"
	"github.com/fullpipe-net/fullpipe/internal/testenv/must"
)

func TestESPSizes(t *testing.T) {
	// The largest packet that still fits 1500, one that does not, an acknowledgement.
	for packet, want := range map[int]int{1438: 1496, 1439: 1512, 40: 104, 1280: 1352} {
		if got := ESPBytes(packet); got != want {
			t.Errorf("%d bytes travel in %d, want %d", packet, got, want)
		}
	}
	for mtu := 600; mtu < 9100; mtu++ {
		if most := ESPPayload(mtu); ESPBytes(most) > mtu || ESPBytes(most+1) <= mtu {
			t.Fatalf("on %d bytes a tunnel carries %d, in %d", mtu, most, ESPBytes(most))
		}
	}
}

// throughGateways overloads both directions for one second with packets of the given sizes and returns the lanes
// after it.
func throughGateways(t *testing.T, path Path, upBytes, downBytes int) (up, down *Lane) {
	t.Helper()
	up, down = path.Lanes()
	waits := [2]int{}
	for now := int64(0); now < int64(time.Second); now += ms / 10 {
		for i, l := range []*Lane{up, down} {
			size := []int{upBytes, downBytes}[i]
			for n := 0; size > 0 && n < 3; n++ {
				kept, _ := l.Offer(now, one(1, size))
				waits[i] += kept
			}
			for run, ok := l.Pop(now); ok; run, ok = l.Pop(now) {
				waits[i] -= run.Count
			}
		}
	}
	delivered := [2]Counters{up.Counters, down.Counters}
	for i, l := range []*Lane{up, down} {
		runs, _ := drain(l)
		for _, r := range runs {
			waits[i] -= r.Count
		}
		if waits[i] != 0 {
			t.Errorf("lane %d: %d packets never came back", i, waits[i])
		}
		l.Counters = delivered[i]
	}
	return up, down
}

func TestGatewaysShareTheirBudget(t *testing.T) {
	path := Path{Up: Config{Rate: 1e8, Tunnelled: true, MTU: 1500, QueueBytes: 1 << 20}, Down: Config{Rate: 1e8,
		Tunnelled: true, MTU: 1500, QueueBytes: 1 << 20},
		VPN: VPN{Kind: Gateway, Crypto: 30e6, Depth: 100}}
	for _, test := range []struct {
		name               string
		upBytes, downBytes int
		up, down           float64 // bit/s of the hosts' packets
	}{
		{"one direction has it all", 1438, 0, 30e6, 0},
		{"equal packets, equal shares", 1438, 1438, 15e6, 15e6},
		{"turns go by packets", 1400, 100, 28e6, 2e6},
	} {
		up, down := throughGateways(t, path, test.upBytes, test.downBytes)
		for i, l := range []*Lane{up, down} {
			want := []float64{test.up, test.down}[i]
			if got := float64(l.Counters.DeliveredBytes) * 8; got < want-30e3 || got > want+30e3 {
				t.Errorf("%s: lane %d carried %.0f bit/s, want %.0f", test.name, i, got, want)
			}
			if want > 0 && (l.Counters.DroppedGateway == 0 || l.Counters.DroppedQueue > 0) {
				t.Errorf("%s: lane %d dropped %d at the gateway, %d at the line", test.name, i, l.Counters.DroppedGateway,
					l.Counters.DroppedQueue)
			}
		}
	}
}

// On a line slower than the gateways, encrypted packets are dropped after the gateways, and every packet's copy is
// returned.
func TestLineBehindGateways(t *testing.T) {
	line := Config{Rate: 10e6, Tunnelled: true, Duplicate: 0.1, MTU: 1500, QueuePackets: 10, Delay: 5 * time.Millisecond}
	up, _ := throughGateways(t, Path{Up: line, Down: line, VPN: VPN{Kind: Gateway, Crypto: 20e6, Depth: 100}}, 1438, 40)
	if got, want := float64(up.Counters.CarriedBytes)*8, 10e6; got < want-30e3 || got > want+30e3 {
		t.Errorf("the line carried %.0f bit/s, want %.0f", got, want)
	}
	if up.Counters.DroppedQueue == 0 || up.Counters.Lost != 0 {
		t.Errorf("dropped at the line %d, lost %d", up.Counters.DroppedQueue, up.Counters.Lost)
	}
	line.PoliceRate, line.PoliceBurst, line.Rate = 5e6, 3000, 0
	up, _ = throughGateways(t, Path{Up: line, Down: line, VPN: VPN{Kind: Gateway, Crypto: 20e6, Depth: 100}}, 1438, 0)
	if got := float64(up.Counters.CarriedBytes) * 8; got < 4.9e6 || got > 5.1e6 || up.Counters.DroppedPolicer == 0 {
		t.Errorf("policed to 5 Mbit/s, the line carried %.0f bit/s and dropped %d", got, up.Counters.DroppedPolicer)
	}
}

// One packet through idle gateways takes the engine's time and the line's time.
func TestDelayOfGateways(t *testing.T) {
	line := Config{Rate: 1e8, Tunnelled: true, Delay: 20 * time.Millisecond, MTU: 1500, QueuePackets: 1}
	up, _ := (&Path{Up: line, Down: line, VPN: VPN{Kind: Gateway, Crypto: 30e6, Depth: 1}}).Lanes()
	kept, tooBig := up.Offer(0, Batch{Segments: 2, Bytes: 1439, Last: 1438})
	_, times := drain(up)
	if want := int64(1438*8*1000/30+1496*8*10) + 20*ms; kept != 1 || tooBig != 1 || len(times) != 1 || times[0] < want-1 ||
		times[0] > want+1 {
		t.Errorf("kept %d, too big %d, arrived %v, want %d", kept, tooBig, times, want)
	}
}

// Packets outside the tunnel do not wait for the gateways and have no overhead.
func TestGateways_IgnorePacketsOutsideTheTunnel(t *testing.T) {
	line := Config{Rate: 1e8, Tunnelled: true, MTU: 1500, QueuePackets: 10}
	up, _ := (&Path{Up: line, Down: line, VPN: VPN{Kind: Gateway, Crypto: 1e6, Depth: 10}}).Lanes()
	up.Offer(0, one(1, 1438))
	up.Offer(0, Batch{ID: 2, Segments: 2, Bytes: 1500, Last: 1500, OutsideTunnel: true})
	kept, tooBig := up.Offer(0, Batch{ID: 3, Segments: 1, Bytes: 1501, Last: 1501, OutsideTunnel: true})
	runs, times := drain(up)
	if kept != 0 || tooBig != 1 || len(runs) != 3 || runs[0].ID != 2 || runs[2].ID != 1 || times[1] != 2*1500*8*10 ||
		up.Counters.CarriedBytes != 2*1500+1496 {
		t.Errorf("kept %d, too big %d, runs %v at %v, %+v", kept, tooBig, runs, times, up.Counters)
	}
}

func TestWireGuardSizes(t *testing.T) {
	for packet, want := range map[int]int{1420: 1480, 1400: 1468, 40: 108, 52: 124, 0: 60} {
		if got := WireGuardBytes(packet, 1420); got != want {
			t.Errorf("%d bytes travel in %d, want %d", packet, got, want)
		}
	}
}

func BenchmarkGateways(b *testing.B) {
	line := Config{Rate: 1e9, Tunnelled: true, Delay: time.Millisecond, MTU: 1500, QueuePackets: 100}
	up, _ := (&Path{Up: line, Down: line, VPN: VPN{Kind: Gateway, Crypto: 1e9, Depth: 100}}).Lanes()
	b.ReportAllocs()
	now := int64(0)
	for b.Loop() {
		now += 12_000
		up.Offer(now, one(1, 1438))
		for _, ok := up.Pop(now); ok; _, ok = up.Pop(now) {
		}
	}
}

// The planner's tunnel arithmetic equals the lab's for each packet size.
func TestPlannedTunnelsAreTheLabs(t *testing.T) {
	ipsec := must.Get(model.ParseTunnel("ipsec:aes256-cbc-sha1"))(t)
	wireguard := must.Get(model.ParseTunnel("wireguard"))(t)
	for _, path := range []int{1500, 1492, 9000, 1280} {
		if got := ipsec.MTU(path); got != ESPPayload(path) {
			t.Errorf("ESP on %d: %d, the lab's is %d", path, got, ESPPayload(path))
		}
		inner := wireguard.MTU(path)
		for packet := 28; packet <= inner; packet++ {
			if got := wireguard.Carry(packet, path); got != WireGuardBytes(packet, inner) {
				t.Fatalf("WireGuard carries %d in %d, the lab in %d", packet, got, WireGuardBytes(packet, inner))
			}
			if got := ipsec.Carry(packet, path); packet <= ESPPayload(path) && got != ESPBytes(packet) {
				t.Fatalf("ESP carries %d in %d, the lab in %d", packet, got, ESPBytes(packet))
			}
		}
	}
}
